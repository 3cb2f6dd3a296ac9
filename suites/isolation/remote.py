"""The judge's proxy of a backend in a host."""

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
from poolproof.suites.isolation.landlock import WRITABLE_VARIABLE
from poolproof.suites.isolation.replies import read, read_changes, read_declarations, read_outcome
from poolproof.suites.isolation.supervision import Message
from poolproof.suites.judging.faults import AdapterError

_T = TypeVar("_T")


class RemoteBackend(Backend):
    """A backend that sends calls as requests to a host, by ``ask``.

    Small tensors are copied to ``staging``, a part of the arena, for a request, and back after it. So a stray write
    there hits only tensors of the current request. The host counts the begun calls in the first byte of ``staging``; it
    may be wrong. ``is_spoiled``: a call changed state of its process that the host could not restore.
    """

    def __init__(self, description: Description, ask: Callable[[Message, int, Callable[[], int]], Message]) -> None:
        self._description = description
        self._ask_host = ask
        self._declared: WeakKeyDictionary[Call, Mapping[str, Any]] = WeakKeyDictionary()
        self.staging = allocate(1 << 20)  # more than the small calls of a request take
        self._start, _ = shared_arena().place(self.staging)
        self._copied: list[tuple[NDArray[np.uint8], NDArray[np.uint8]]] = []
        self.renew()
        self.product, self.interface = description.product, description.interface
        self.survives_fork, self.modes = description.survives_fork, description.modes
        self.variants, self.tags, self.actions = description.variants, description.tags, description.actions

    def renew(self) -> None:
        """Reset the state for a fresh process."""
        self._is_usable, self.is_spoiled = True, False
        self._requested: Sequence[Call] = ()

    @property
    def in_flight(self) -> Call | None:
        """The last begun call of a request without a reply; None if there is none."""
        begun = self._requested[: self.staging[0]]
        return begun[-1] if begun else None

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return self._description.unsupported.get((operator.name, dtype, index_dtype), "its host names no such call")

    def abilities(self, operator: Operator) -> Abilities:
        return self._description.abilities.get(operator.name, ALL)

    def run(self, call: Call, mode: str = "") -> Outcome:
        return self._run([call], {"mode": mode} if mode else {})[0]

    def run_all(self, calls: Sequence[Call]) -> list[Outcome]:
        return self._run(calls, {"declare": True})

    def _run(self, calls: Sequence[Call], how: Message) -> list[Outcome]:
        self._requested = calls
        request = {"do": "run", "calls": self._written(calls), "begun": self._start, **how}
        return self._ask(request, partial(self.read_outcomes, calls), len(calls))

    def read_outcomes(self, calls: Sequence[Call], done: Message) -> list[Outcome]:
        """Return the outcomes of calls, without those that were not made, and keep the declarations of the first."""
        if "declared" in done:
            self._declared[calls[0]] = read_declarations(done["declared"])
        records = done["outcomes"]
        if not 1 <= len(records) <= len(calls):
            raise ProtocolError(f"there are {len(records)} outcomes of {len(calls)} calls")
        return [read_outcome(record, call, done["changed"]) for record, call in zip(records, calls, strict=False)]

    def attempt(self, call: ContractCall, *, runs: bool = True) -> Attempt:
        request = {"do": "attempt", "call": call.to_record(), "runs": runs}
        return self._ask(request, lambda done: read(Attempt, done["attempt"]))

    def accumulation(self, call: Call) -> AccumulationModel:
        return self._declaration("accumulation", call)

    def forward_rule(self, call: Call) -> ForwardRule:
        return self._declaration("forward_rule", call)

    def is_deterministic(self, call: Call) -> bool:
        return self._declaration("is_deterministic", call)

    def may_refuse(self, call: Call) -> str:
        return self._declaration("may_refuse", call)

    def route(self, call: Call) -> str:
        return self._declaration("route", call)

    def _declaration(self, name: str, call: Call) -> Any:
        declared = self._declared.get(call)
        if declared is None:
            (record,) = self._written([call])
            declared = self._ask({"do": "declare", "call": record}, lambda done: read_declarations(done["declared"]))
            self._declared[call] = declared
        if isinstance(declared[name], Raised):
            raise adapter_error(declared[name])
        return declared[name]

    def environment(self) -> Mapping[str, str]:
        return self._description.environment

    def is_usable(self) -> bool:
        return self._is_usable

    def memory_after(self, call: Call, count: int, refused: bool = False) -> MemoryInUse:
        (record,) = self._written([call])
        request = {"do": "memory", "call": record, "begun": self._start, "count": count, "refused": refused}

        def in_use(done: Message) -> MemoryInUse:
            return read(MemoryInUse, {"device": done["bytes"], "host": done.get("host")})

        return self._ask(request, in_use, 1 if refused else max(count, 1))

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        request = {"do": "sequence", "actions": list(map(write_flat, actions)), "calls": self._written(calls)}
        runs = sum(action.do == "run" for action in actions)
        return self._ask(request, lambda done: read(SequenceResult, done["sequence"]), max(runs, 1))

    def _written(self, calls: Sequence[Call]) -> list[Message]:
        """Return the records of calls for the next request."""
        self._end = ALIGNMENT
        return [write_call(call, self._place) for call in calls]

    def _place(self, buffer: NDArray[np.uint8]) -> tuple[int, int]:
        """Return the offset of bytes in the arena, and the bytes of their fence; small tensors are copied there."""
        at, fence = shared_arena().place(buffer)
        if at >= 0:
            return at, fence
        at, stop = self._end, self._end + buffer.nbytes
        copy = self.staging[at:stop]
        copy[:] = buffer
        self._copied.append((buffer, copy))
        self._end = -(-stop // ALIGNMENT) * ALIGNMENT
        return self._start + at, 0

    def _ask(self, request: Message, read: Callable[[Any], _T], calls: int = 1) -> _T:
        """Send a request and read the reply; raise `AdapterError` if the adapter raised, or if the reply is invalid."""
        self.staging[0] = 0
        try:
            reply = self._ask_host(request, calls, lambda: int(self.staging[0]))
        finally:
            for buffer, copy in self._copied:
                buffer[:] = copy
            self._copied.clear()
        self._requested = ()
        return self._read(reply, read)

    def _read(self, reply: Message, read: Callable[[Any], _T]) -> _T:
        try:
            if "raised" in reply:
                raise adapter_error(reply["raised"])
            if "unavailable" in reply:
                raise AdapterError(str(reply["unavailable"]))
            done = reply["done"]
            self._is_usable &= bool(done.get("usable", True))
            changes = read_changes(done.get("changed", []))
            self.is_spoiled |= not all(change.restored or change.what in FIRST_CALL for change in changes)
            return read({**done, "changed": tuple((change.what, change.before, change.after) for change in changes)})
        except (ProtocolError, LookupError, TypeError, ValueError, AttributeError) as error:
            raise AdapterError(f"returned an invalid result: {error}") from None


def adapter_error(record: Any) -> AdapterError:
    """Return the error that a host reports, as a record or already read."""
    raised = record if isinstance(record, Raised) else read(Raised, record)
    if not raised.type:
        return AdapterError(raised.text)
    text = " ".join(f"{raised.type}: {raised.text}".split()) if raised.text else raised.type
    if raised.type == "PermissionError":
        text += f"; a host may write in its TMPDIR and in the folders of {WRITABLE_VARIABLE}"
    return AdapterError(f"raised {text} ({raised.file}, line {raised.line}, in {raised.function})", raised.traceback)
