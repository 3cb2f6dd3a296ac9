"""The judge's proxy of a backend that lives in a host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Attempt, Backend, Call, MemoryInUse, Outcome, SequenceResult
from poolproof.backends.host.protocol import FIRST_CALL, Description, ProtocolError, Raised, write_call, write_flat
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.contract.call import ContractCall
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.operators import Operator
from poolproof.references.sequences import Actions
from poolproof.suites.cases.memory import ALIGNMENT
from poolproof.suites.isolation.arena import allocate, shared_arena
from poolproof.suites.isolation.replies import read, read_changes, read_declarations, read_outcome
from poolproof.suites.isolation.supervision import Message
from poolproof.suites.judging.faults import AdapterError, HostDied, Interrupted

_T = TypeVar("_T")


class StagingBuffer:
    """The part of the arena through which small tensors pass: copied there when calls are requested, and back after it.

    So the tensors of one request at a time, and nothing that is judged, lie where implementations write. ``begun`` is
    the byte in which the host writes how many calls of the last request were begun, and it may be any.
    """

    def __init__(self) -> None:
        self._memory = allocate(1 << 20)  # more bytes than there are in the calls of a request that are small
        self.start, _ = shared_arena().place(self._memory)
        self.begun = self._memory[:1]
        self._copied: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]] = []

    def write(self, calls: Sequence[Call]) -> list[Message]:
        """Write calls for a request; their tensors are copied here, if they are not in the arena anyway."""
        self._end = ALIGNMENT
        return [write_call(call, self._place) for call in calls]

    def _place(self, buffer: NDArray[np.uint8]) -> tuple[int, int]:
        at, fence = shared_arena().place(buffer)
        if at >= 0:
            return at, fence
        copy = self._memory[self._end : self._end + buffer.nbytes]
        copy[:] = buffer
        self._copied.append((buffer, copy))
        at = self.start + self._end
        self._end += -(-buffer.nbytes // ALIGNMENT) * ALIGNMENT
        return at, 0

    def take_back(self) -> None:
        """Copy back what was copied here."""
        for buffer, copy in self._copied:
            buffer[:] = copy
        self._copied.clear()


class RemoteBackend(Backend):
    """A backend whose calls are requests to a host, to which ``ask`` replies: of None, to what was sent before.

    ``is_spoiled``: a call changed the state of its process, and the host could not restore that.
    """

    def __init__(self, said: Description, ask: Callable[[Message | None], Message]) -> None:
        self._said = said
        self._ask_host = ask
        self._declared: WeakKeyDictionary[Call, Mapping[str, Any]] = WeakKeyDictionary()
        self._staging = StagingBuffer()
        self.renew()
        self.product, self.interface, self.survives_fork = said.product, said.interface, said.survives_fork
        self.modes, self.variants, self.tags, self.actions = said.modes, said.variants, said.tags, said.actions

    def renew(self) -> None:
        """Reset the state for a fresh process."""
        self._is_usable, self.is_spoiled = True, False
        self._requested: Sequence[Call] = ()
        self._sent: Sequence[Call] = ()
        self._replied: tuple[Sequence[Call], Message] | None = None

    @property
    def in_flight(self) -> Call | None:
        """The last call that was begun, of those that were requested and are not done."""
        begun = self._requested[: self._staging.begun[0]]
        return begun[-1] if begun else None

    def send(self, calls: Sequence[Call], send: Callable[[Message], None]) -> None:
        """Request calls ahead; `run_all` of the same calls returns their outcomes."""
        send(self._request_of(calls, {"declare": True}))
        self._sent = calls

    def receive(self) -> None:
        """Wait until the calls that were sent are made, if they are not yet; `HostDied` if they will not be."""
        if not self._sent:
            return
        calls, self._sent = self._sent, ()
        self._replied = calls, self._exchange(None)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return self._said.unsupported.get((operator.name, dtype, index_dtype), "its host names no such call")

    def abilities(self, operator: Operator) -> Abilities:
        return self._said.abilities.get(operator.name, ALL)

    def run(self, call: Call, mode: str = "") -> Outcome:
        return self._run([call], {"mode": mode} if mode else {})[0]

    def run_all(self, calls: Sequence[Call]) -> list[Outcome]:
        if self._replied and self._replied[0] is calls:
            return self._read(self._replied[1], partial(self.read_outcomes, calls))
        return self._run(calls, {"declare": True})

    def _run(self, calls: Sequence[Call], how: Message) -> list[Outcome]:
        self._finish_sent()
        return self.ask(self._request_of(calls, how), partial(self.read_outcomes, calls))

    def _request_of(self, calls: Sequence[Call], how: Message) -> Message:
        self._requested, self._staging.begun[0] = calls, 0
        return {"do": "run", "calls": self._staging.write(calls), "begun": self._staging.start, **how}

    def read_outcomes(self, calls: Sequence[Call], done: Message) -> list[Outcome]:
        """Read the outcomes of calls, of which the last may not have been made, and what is declared of the first."""
        if "declared" in done:
            self._declared[calls[0]] = read_declarations(done["declared"])
        records = done["outcomes"]
        if not 1 <= len(records) <= len(calls):
            raise ProtocolError(f"there are {len(records)} outcomes of {len(calls)} calls")
        return [read_outcome(record, call, done["changed"]) for record, call in zip(records, calls, strict=False)]

    def attempt(self, call: ContractCall, *, runs: bool = True) -> Attempt:
        request = {"do": "attempt", "call": call.to_record(), "runs": runs}
        return self.ask(request, lambda done: read(Attempt, done["attempt"]))

    def accumulation(self, call: Call) -> AccumulationModel:
        return self._declaration("accumulation", call)

    def forward_rule(self, call: Call) -> ForwardRule:
        return self._declaration("forward_rule", call)

    def is_deterministic(self, call: Call) -> bool:
        return self._declaration("is_deterministic", call)

    def route(self, call: Call) -> str:
        return self._declaration("route", call)

    def _declaration(self, name: str, call: Call) -> Any:
        declared = self._declared.get(call)
        if declared is None:
            (record,) = self.written([call])
            declared = self.ask({"do": "declare", "call": record}, lambda done: read_declarations(done["declared"]))
            self._declared[call] = declared
        if isinstance(declared[name], Raised):
            raise adapter_error(declared[name])
        return declared[name]

    def environment(self) -> Mapping[str, str]:
        return self._said.environment

    def is_usable(self) -> bool:
        return self._is_usable

    def memory_after(self, call: Call, count: int, refused: bool = False) -> MemoryInUse:
        (record,) = self.written([call])
        request = {"do": "memory", "call": record, "count": count, "refused": refused}
        return self.ask(request, lambda done: read(MemoryInUse, {"device": done["bytes"], "host": done.get("host")}))

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        request = {"do": "sequence", "actions": list(map(write_flat, actions)), "calls": self.written(calls)}
        return self.ask(request, lambda done: read(SequenceResult, done["sequence"]))

    def written(self, calls: Sequence[Call]) -> list[Message]:
        """Write calls for a request, which has to be the next that is asked."""
        self._finish_sent()
        return self._staging.write(calls)

    def ask(self, request: Message, read: Callable[[Any], _T]) -> _T:
        """Send a request and read the reply; `AdapterError` if the adapter raised, or gave what it may not."""
        self._finish_sent()
        return self._read(self._exchange(request), read)

    def _exchange(self, request: Message | None) -> Message:
        try:
            reply = self._ask_host(request)
        finally:
            self._staging.take_back()
        self._requested = ()
        return reply

    def _finish_sent(self) -> None:
        """Wait for the calls that were sent ahead; `Interrupted` if their process is of no use after them."""
        if not self._sent:
            return
        try:
            self.receive()
            assert self._replied is not None
            self._read(self._replied[1], bool)
        except (HostDied, AdapterError):
            raise Interrupted from None
        if self.is_spoiled or not self._is_usable:
            raise Interrupted

    def _read(self, reply: Message, read: Callable[[Any], _T]) -> _T:
        try:
            if "raised" in reply:
                raise adapter_error(reply["raised"])
            done = reply["done"]
            self._is_usable &= bool(done.get("usable", True))
            changes = read_changes(done.get("changed", []))
            self.is_spoiled |= not all(change.restored or change.what in FIRST_CALL for change in changes)
            return read({**done, "changed": tuple((change.what, change.before, change.after) for change in changes)})
        except (ProtocolError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise AdapterError(f"returned what it may not: {error}") from None


def adapter_error(said: Any) -> AdapterError:
    """Return the error that a host reports, by a record or as it was read of one."""
    raised = said if isinstance(said, Raised) else read(Raised, said)
    if not raised.type:
        return AdapterError(raised.text)
    text = " ".join(f"{raised.type}: {raised.text}".split()) if raised.text else raised.type
    return AdapterError(f"raised {text} ({raised.file}, line {raised.line}, in {raised.function})", raised.traceback)
