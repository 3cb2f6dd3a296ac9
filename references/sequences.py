"""Sequences: what callers do with calls that no single call shows, as data.

A sequence is a tuple of actions on numbered calls of one operator, whose tensors a backend is given. Executors,
workspaces, streams and threads have numbers, too, and are there from the action that names them first until the
sequence has ended and all its streams are idle. Whatever comes before, every call's result is the one that it gives
alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VERBS: Mapping[str, str] = {
    "prepare": "phase one of a call, or what an interface without phases does before it queues work; `uncached`: "
    "described so that the library's cache does not know it",
    "need": "the sequence applies only where phase one asked for `a workspace`, or for `no workspace`",
    "run": "phase two of an executor on a stream, in a workspace, which may be a `null workspace` or `understated`",
    "refuse": "phase one of a call with another of its tensors for its indices, which it refuses",
    "make_repeatable": "an executor may run again; where that is refused, and not asked, the sequence does not apply",
    "set_addresses": "an executor works on another call's tensors from now on",
    "destroy": "an executor is destroyed",
    "destroy_descriptors": "a call's tensor objects and lists are destroyed",
    "pass_null": "a null executor is passed to a function, or to `phase two`",
    "share_inputs": "a backward's first input moves into the memory of its self, `wholly` or `in part`",
    "fill": "the host puts zeros into a call's `inputs`, or poison into its `outputs` or its `workspace`",
    "upload": "the host puts a call's inputs into their place",
    "copy": "a stream copies a call's `inputs` into their place, or takes its `outputs` as they are then",
    "erase": "a stream puts zeros into a call's inputs",
    "hold_up": "a stream is busy for many times as long as it takes to queue a call",
    "record": "a stream records the event",
    "wait": "a stream waits for the event",
    "synchronise": "the host waits for a stream",
    "end_thread": "a thread ends",
}
"""What each action does; in backticks, what it may be done to or how."""

DEFAULT_STREAM = 0


@dataclass(frozen=True)
class Action:
    """One of `VERBS`, done by a ``thread`` (0 is that of all other calls) on a ``stream`` (0 is the default one).

    ``workspace`` is that of the call of this number; where it is None, of that which phase one was run for. Whatever
    the status of what is ``asked`` the sequence goes on; it ends with any other that is not success. What is done
    ``at_once`` begins together with the action behind it, in another thread.
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


Actions = tuple[Action, ...]

PREPARE, HOLD_UP, RUN = Action("prepare"), Action("hold_up"), Action("run")
WITHHOLD, PRODUCE = Action("fill", "inputs"), Action("copy", "inputs")
RUN_FRESH = (Action("fill", "outputs"), RUN, Action("synchronise"))


def calls_in(actions: Actions) -> int:
    return 1 + max(action.call for action in actions)


def abilities_for(actions: Actions) -> set[str]:
    """List what a backend has to declare for a sequence (`Backend.actions`)."""
    shares = {"workspace" for action in actions if action.workspace is not None}
    return {action.do for action in actions} | shares | {"thread" for action in actions if action.thread}


_LOAD = range(1, 9)
_ROUNDS = range(0, 32, 2)

MODES: Mapping[str, Actions] = {
    "with repeated executor": (
        Action("prepare", "uncached", call=1),
        Action("make_repeatable"),
        RUN,
        Action("synchronise"),
        Action("fill", "workspace", call=1),
        Action("set_addresses"),
        Action("run", workspace=0),
    ),
    "with two inputs in one memory": (Action("share_inputs", "wholly"), PREPARE, RUN),
    "with two inputs in memory that overlaps": (Action("share_inputs", "in part"), PREPARE, RUN),
    "with under load": (
        *(Action("prepare", call=1, executor=number) for number in _LOAD),
        *(Action("run", executor=number, stream=2) for number in _LOAD),
        PREPARE,
        RUN,
    ),
}
"""How a call may be made, besides as usual."""

HAZARDS: Mapping[str, Actions] = {
    "with its inputs still being made by work queued before it on its stream": (
        WITHHOLD,
        PREPARE,
        HOLD_UP,
        PRODUCE,
        RUN,
    ),
    "with its inputs overwritten by work queued behind it on its stream": (
        PREPARE,
        Action("hold_up", stream=DEFAULT_STREAM),
        RUN,
        Action("erase"),
    ),
    "with its outputs read by work queued behind it on its stream": (
        PREPARE,
        Action("hold_up", stream=DEFAULT_STREAM),
        RUN,
        Action("copy", "outputs"),
    ),
    "with the workspace of the call queued before it on its stream": (
        Action("prepare", call=1, executor=1),
        PREPARE,
        HOLD_UP,
        Action("run", executor=1, workspace=0),
        RUN,
    ),
    "with its inputs made on another stream, for whose event its stream waits": (
        WITHHOLD,
        PREPARE,
        Action("hold_up", stream=2),
        Action("copy", "inputs", stream=2),
        Action("record", stream=2),
        Action("wait"),
        RUN,
    ),
    "with an executor that ran before, on another stream": (
        Action("prepare", "uncached"),
        Action("make_repeatable"),
        RUN,
        Action("synchronise"),
        *(WITHHOLD, Action("fill", "outputs")),
        *(Action("hold_up", stream=2), Action("copy", "inputs", stream=2), Action("run", stream=2)),
    ),
    "at the same time as another call on another stream": (
        *(Action("prepare", call=call, executor=number + call) for number in _ROUNDS for call in (0, 1)),
        Action("synchronise", stream=2),
        HOLD_UP,
        Action("record"),
        Action("wait", stream=2),
        *(Action("run", executor=number + call, stream=1 + call) for number in _ROUNDS for call in (0, 1)),
    ),
}
"""Other work on streams around a call, of which the words say how it was made."""

REFUSED: Actions = (Action("refuse", asked=True),)
"""A call that is refused."""
