"""Sequences of actions, as data: what callers do beyond a single call.

A sequence is a tuple of actions on numbered calls. Executors, workspaces, streams and threads have
numbers too. Each exists from the first action that names it until the sequence has ended and all its streams are idle.
Every call must give the same result as without the rest of the sequence.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields

VERBS: Mapping[str, str] = {
    "prepare": "phase one of a call, or the work before queueing if an interface has no phases; `uncached`: "
    "with a description that the library's cache does not know; `readdressed`: with tensor objects made for "
    "other memory",
    "need": "the sequence applies only if phase one requests `a workspace` or `no workspace`",
    "run": "phase two of an executor on a stream, in a workspace, which may be a `null workspace`, `understated`, "
    "`enlarged` with its size stated, or `shifted` to another multiple of 64 bytes",
    "refuse": "phase one of a call with a wrong tensor as its indices, which must be refused",
    "make_repeatable": "an executor may run again; the sequence does not apply if this is refused, unless `asked`",
    "set_addresses": "an executor works on another call's tensors from now on",
    "destroy": "an executor is destroyed",
    "destroy_descriptors": "a call's tensor objects and lists are destroyed",
    "pass_null": "a null executor is passed to a function, or to `phase two`",
    "share_inputs": "a backward's first input moves into the memory of its self, `wholly` or `in part`",
    "fill": "the host puts zeros into a call's `inputs`, or poison into its `outputs` or its `workspace`",
    "upload": "the host puts a call's inputs into their place",
    "copy": "a stream copies a call's `inputs` into their place, or saves its current `outputs`",
    "erase": "a stream puts zeros into a call's inputs, or into its `outputs`",
    "hold_up": "a stream is busy for many times the time to queue a call",
    "record": "a stream records the event",
    "wait": "a stream waits for the event",
    "synchronise": "the host waits for a stream",
    "end_thread": "a thread ends",
}
"""Verb -> what it does; its objects and manners are in backticks."""

MANNERS = ("workspace", "thread", "uncached", "readdressed")
"""Abilities that a backend declares besides verbs: sharing workspaces, other threads, descriptions of phase one."""

DEFAULT_STREAM = 0


@dataclass(frozen=True)
class Action:
    """One action of a sequence.

    Attributes:
        do: One of `VERBS`.
        workspace: Number of the call that lends its workspace; by default the one that phase one ran for.
        stream: 0 is the default stream.
        thread: 0 is the thread of all other calls.
        asked: The sequence continues with any status. Without it, a status other than success ends the sequence.
        at_once: It starts together with the next action, which is in another thread.
    """

    do: str
    what: str = ""
    call: int = 0
    executor: int = 0
    workspace: int | None = None
    stream: int = 1
    thread: int = 0
    asked: bool = False
    at_once: bool = False

    def __str__(self) -> str:
        """Write the verb and all values that are not defaults: ``run executor=1 stream=2``."""
        changed = {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}
        words = (
            name if value is True else f"{name}={value}" for name, value in changed.items() if type(value) is not str
        )
        return " ".join([self.do, *filter(None, [self.what]), *words])

    @classmethod
    def parse(cls, text: str) -> Action:
        """Read the text that `str` writes; raise ValueError or TypeError if it is invalid."""
        verb, *words = text.split()
        numbers = {name: int(value) for name, is_one, value in (word.partition("=") for word in words) if is_one}
        flags = {word: True for word in words if word in ("asked", "at_once")}
        what = " ".join(word for word in words if "=" not in word and word not in flags)
        return cls(verb, what, **numbers, **flags)  # type: ignore[arg-type]


_DEFAULTS = {each.name: each.default for each in fields(Action)[2:]}
"""The fields that mean something only to some verbs."""

Actions = tuple[Action, ...]

PREPARE, RUN = Action("prepare"), Action("run")
RUN_FRESH = (Action("fill", "outputs"), RUN, Action("synchronise"))


def calls_in(actions: Actions) -> int:
    return 1 + max(action.call for action in actions)


def abilities_for(actions: Actions) -> set[str]:
    """List the abilities that a backend must declare for a sequence (`Backend.actions`)."""
    shares = {"workspace" for action in actions if action.workspace is not None}
    described = {action.what for action in actions if action.do == "prepare" and action.what}
    streams = {"synchronise" for action in actions if action.stream != Action.stream}
    threads = {"thread" for action in actions if action.thread}
    return {action.do for action in actions} | shares | described | streams | threads


_LOAD = range(1, 9)
_ROUNDS = [(number + call, call) for number in range(0, 32, 2) for call in (0, 1)]
"""(executor, the call that it is prepared for), two at a time."""


def actions_of(*texts: str) -> Actions:
    return tuple(map(Action.parse, texts))


MODES: Mapping[str, Actions] = {
    "with repeated executor": (
        *actions_of("prepare uncached call=1", "make_repeatable", "run", "synchronise"),
        *actions_of("fill workspace call=1", "set_addresses", "run workspace=0"),
    ),
    "with two inputs in one memory": actions_of("share_inputs wholly", "prepare", "run"),
    "with two inputs in memory that overlaps": actions_of("share_inputs in part", "prepare", "run"),
    "with under load": (
        *(Action("prepare", call=1, executor=number) for number in _LOAD),
        *(Action("run", executor=number, stream=2) for number in _LOAD),
        *(PREPARE, RUN),
    ),
}
"""Unusual ways to make a call. The key says how."""

HAZARDS: Mapping[str, Actions] = {
    "with its inputs still being made by work queued before it on its stream": actions_of(
        "fill inputs", "prepare", "hold_up", "copy inputs", "run"
    ),
    "with its inputs overwritten by work queued behind it on its stream": actions_of(
        "prepare", "hold_up stream=0", "run", "erase"
    ),
    "with its outputs read by work queued behind it on its stream": actions_of(
        "prepare", "hold_up stream=0", "run", "copy outputs"
    ),
    "with the workspace of the call queued before it on its stream": actions_of(
        "prepare call=1 executor=1", "prepare", "hold_up", "run executor=1 workspace=0", "run"
    ),
    "with its inputs made on another stream, after a wait for that stream's event": actions_of(
        *("fill inputs", "prepare", "hold_up stream=2", "copy inputs stream=2", "record stream=2"),
        *("wait", "run"),
    ),
    "with an executor that ran before, on another stream": actions_of(
        *("prepare uncached", "make_repeatable", "run", "synchronise"),
        *("fill inputs", "fill outputs", "hold_up stream=2", "copy inputs stream=2", "run stream=2"),
    ),
    "at the same time as another call on another stream": (
        *(Action("prepare", call=call, executor=executor) for executor, call in _ROUNDS),
        *actions_of("synchronise stream=2", "hold_up", "record", "wait stream=2"),
        *(Action("run", executor=executor, stream=1 + call) for executor, call in _ROUNDS),
    ),
}
"""Other work on streams around a call. The key says how the call was made."""

REFUSED: Actions = (Action("refuse", asked=True),)
"""A call that is refused."""

FORMS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "prepare": (("", "uncached", "readdressed"), ("call", "executor", "thread", "at_once")),
    "run": (("",), ("executor", "workspace", "stream", "thread")),
    "refuse": (("",), ("call", "thread", "asked")),
    "make_repeatable": (("",), ("executor", "thread")),
    "set_addresses": (("",), ("call", "executor", "thread")),
    "destroy": (("",), ("executor", "thread", "asked")),
    "destroy_descriptors": (("",), ("call",)),
    "fill": (("inputs", "outputs"), ("call",)),
    "upload": (("",), ("call",)),
    "copy": (("inputs", "outputs"), ("call", "stream")),
    "erase": (("", "outputs"), ("call", "stream")),
    "hold_up": (("",), ("stream",)),
    "record": (("",), ("stream",)),
    "wait": (("",), ("stream",)),
    "synchronise": (("",), ("stream",)),
    "end_thread": (("",), ("thread",)),
}
"""Verb of drawn sequences -> (its objects or manners, the fields that mean something to it)."""

MOST = 64
"""Upper bound, exclusive, of the numbers of calls, executors, streams and threads."""


class IllegalAction(ValueError):
    """An action that no source defines, or that makes a result unpredictable; the text says why."""


def why_illegal(actions: Actions, kinds: Sequence[Hashable]) -> str:
    """Return why no caller may perform these actions on calls of these kinds; empty if one may.

    Calls of one kind differ only in their data. The rules follow from the sources of
    `poolproof.references.contract.scenarios`.
    """
    model = SequenceModel(kinds)
    try:
        for number, action in enumerate(actions, 1):
            try:
                model.perform(action)
            except IllegalAction as error:
                return f"action {number}, {action}: {error}"
        model.finish()
    except IllegalAction as error:
        return str(error)
    return ""


@dataclass
class _Executor:
    """``made_for``: number of the call that it was prepared for; ``call``: of the one that lends its tensors."""

    made_for: int
    call: int
    is_new: bool
    is_repeatable: bool = False
    has_run: bool = False


_Clock = Mapping[int, int]
"""Stream -> how much of its work has surely finished, as the owner of the clock knows."""


def _later(first: _Clock, second: _Clock) -> dict[int, int]:
    return {stream: max(first.get(stream, 0), second.get(stream, 0)) for stream in {**first, **second}}


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise IllegalAction(reason)


@dataclass
class SequenceModel:
    """The state after some actions: which work is ordered, and which results exist.

    ``last_runs`` maps a call to the action, numbered from 0, that made its results.
    """

    kinds: Sequence[Hashable]
    last_runs: dict[int, int] = field(default_factory=dict)
    _performed: list[Action] = field(default_factory=list)
    _executors: dict[int, _Executor] = field(default_factory=dict)
    _last_work: dict[object, tuple[int, int]] = field(default_factory=dict)
    _streams: dict[int, _Clock] = field(default_factory=dict)
    _host: _Clock = field(default_factory=dict)
    _event: _Clock | None = None
    _withheld: set[int] = field(default_factory=set)
    _results: set[int] = field(default_factory=set)
    _copied: set[int] = field(default_factory=set)
    _threads: set[int] = field(default_factory=set)
    _cached: set[Hashable] = field(default_factory=set)

    def perform(self, action: Action) -> None:
        """Perform one more action; an illegal one raises `IllegalAction` and changes nothing."""
        whats, meant = FORMS.get(action.do, ((), ()))
        _require(action.what in whats, "drawn sequences do not contain it")
        for name, default in _DEFAULTS.items():
            value = getattr(action, name)
            if value != default and name not in meant:
                raise IllegalAction(f"{action.do} has no {name}")
            if value is not None and not 0 <= value < MOST:
                raise IllegalAction(f"{name} is not in [0, {MOST})")
        _require(max(action.call, action.workspace or 0) < len(self.kinds), f"there are {len(self.kinds)} calls")
        for before in (each for each in self._performed[-1:] if each.at_once):
            is_beside = action.do == "prepare" and action.thread != before.thread and action.executor != before.executor
            _require(is_beside, "only another phase one, in another thread, may begin at once with it")
        _require(bool(action.thread) or not action.at_once, "what begins at once is in a thread of its own")
        getattr(self, f"_{action.do}")(action)
        self._performed.append(action)
        if action.do != "end_thread":
            self._threads.add(action.thread)

    def finish(self) -> None:
        """Require that all results exist at the end, and that the sequence can be repeated."""
        _require(bool(self.last_runs), "no call runs")
        _require(not self._performed[-1].at_once, "nothing begins at once with the last action")
        for call in sorted(self.last_runs.keys() - self._results - self._copied):
            raise IllegalAction(f"the results of call {call} are lost at the end")
        _require(not self._cached, "an uncached executor was not made repeatable, so the library's cache keeps it")

    def _prepare(self, action: Action) -> None:
        _require(action.executor not in self._executors, "the executor is there already")
        kind, is_uncached = self.kinds[action.call], action.what == "uncached"
        self._executors[action.executor] = _Executor(action.call, action.call, is_uncached and kind not in self._cached)
        self._cached |= {kind} if is_uncached else set()

    def _run(self, action: Action) -> None:
        executor = self._executor(action)
        call, workspace = executor.call, executor.made_for if action.workspace is None else action.workspace
        _require(not executor.has_run or executor.is_repeatable, "it ran before, and is not repeatable")
        _require(call not in self._withheld, "its inputs are not there")
        self._queue(action, ("call", call), ("workspace", workspace), ("executor", action.executor))
        executor.has_run = True
        if not executor.is_repeatable:  # phase two has destroyed it
            del self._executors[action.executor], self._last_work["executor", action.executor]
        self._results.add(call)
        if call not in self._copied:
            self.last_runs[call] = len(self._performed)

    def _refuse(self, action: Action) -> None:
        _require(action.asked, "a refusal must be `asked`")

    def _make_repeatable(self, action: Action) -> None:
        executor = self._executor(action)
        _require(not executor.has_run, "it ran before")
        _require(executor.is_new, "it came from the library's cache")
        executor.is_repeatable, executor.is_new = True, False
        self._cached.discard(self.kinds[executor.made_for])

    def _set_addresses(self, action: Action) -> None:
        executor = self._executor(action)
        _require(executor.is_repeatable, "it is not repeatable")
        _require(self.kinds[executor.made_for] == self.kinds[action.call], "the calls differ in more than their data")
        self._wait_for(("executor", action.executor))
        executor.call = action.call

    def _destroy(self, action: Action) -> None:
        executor = self._executor(action)
        _require(action.asked != executor.has_run, "`asked` must be set if it never ran, and only then")
        self._wait_for(("executor", action.executor))
        del self._executors[action.executor]

    def _destroy_descriptors(self, action: Action) -> None:
        waiting = any(executor.made_for == action.call for executor in self._executors.values())
        _require(not waiting, "an executor may still need them")

    def _fill(self, action: Action) -> None:
        self._wait_for(("call", action.call))
        self._spoil(action)

    def _upload(self, action: Action) -> None:
        self._wait_for(("call", action.call))
        self._withheld.discard(action.call)

    def _copy(self, action: Action) -> None:
        is_input = action.what == "inputs"
        _require(not is_input or action.call in self._withheld, "its inputs are there")
        _require(is_input or action.call in self._results, "it has no results")
        self._queue(action, ("call", action.call))
        (self._withheld.discard if is_input else self._copied.add)(action.call)

    def _erase(self, action: Action) -> None:
        self._queue(action, ("call", action.call))
        self._spoil(action)

    def _spoil(self, action: Action) -> None:
        if action.what == "outputs":
            self._results.discard(action.call)
        else:
            self._withheld.add(action.call)

    def _hold_up(self, action: Action) -> None:
        self._queue(action)

    def _record(self, action: Action) -> None:
        _require(self._event is None, "the event was recorded before")
        self._event = self._streams.get(action.stream, {})

    def _wait(self, action: Action) -> None:
        _require(self._event is not None, "nothing recorded the event")
        self._streams[action.stream] = _later(self._streams.get(action.stream, {}), self._event or {})

    def _synchronise(self, action: Action) -> None:
        self._host = _later(self._host, self._streams.get(action.stream, {}))

    def _end_thread(self, action: Action) -> None:
        _require(action.thread in self._threads - {0}, "there is no such thread")
        self._threads.discard(action.thread)

    def _executor(self, action: Action) -> _Executor:
        _require(action.executor in self._executors, "there is no such executor")
        return self._executors[action.executor]

    def _queue(self, action: Action, *used: tuple[str, int]) -> None:
        """Append work to a stream, behind all other work that uses the same things."""
        clock = _later(self._streams.get(action.stream, {}), self._host)
        for thing in used:
            stream, position = self._last_work.get(thing, (action.stream, 0))
            in_order = stream == action.stream or clock.get(stream, 0) >= position
            _require(in_order, f"{' '.join(map(str, thing))} is in use on stream {stream}")
        clock[action.stream] = clock.get(action.stream, 0) + 1
        self._streams[action.stream] = clock
        self._last_work.update((thing, (action.stream, clock[action.stream])) for thing in used)

    def _wait_for(self, thing: tuple[str, int]) -> None:
        """Require that the host has waited for all work that uses ``thing``."""
        stream, position = self._last_work.get(thing, (0, 0))
        _require(self._host.get(stream, 0) >= position, f"{thing[0]} {thing[1]} is in use on stream {stream}")
