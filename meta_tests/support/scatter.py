"""A correct backend in numpy: a second independent implementation, for tests to break one step of.

`scatter_backends` are copies of it whose results are wrong, `dying_backends` those whose processes do not return.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from poolproof.backends.base import Backend, Call, Outcome, SequenceResult, Status
from poolproof.references.formats import FORMATS
from poolproof.references.forward import forward_maximum
from poolproof.references.geometry import Axis
from poolproof.references.indices import MASK
from poolproof.references.operators import Operator
from poolproof.references.sequences import HAZARDS, Action, Actions, abilities_for


class Scatter(Backend):
    """Float32 accumulation in memory order and one rounding, or the forward maximum. Override one step to break it."""

    survives_fork = True

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if operator.indices is MASK:
            return "no masks"
        return "no int8 indices" if index_dtype == "int8" else None

    def objection(self, call: Call) -> str:
        axes = axes_of(call)
        empty = not call.operator.is_backward and any(axis.has_empty_window for axis in axes)
        return "windows without a cell are refused" if empty else ""

    def environment(self) -> Mapping[str, str]:
        return {"numpy": np.__version__}

    def run(self, call: Call, mode: str = "") -> Outcome:
        objection = self.objection(call)
        if objection:
            return Outcome(Status.REFUSED, code=161002, message=objection)
        started = time.perf_counter()
        if call.operator.is_backward:
            self.backward(call)
        else:
            self.forward(call)
        seconds = time.perf_counter() - started
        return Outcome(Status.COMPLETED, seconds=seconds, results=self.results(call), sanitizer=())

    def results(self, call: Call) -> dict[str, tuple[tuple[int, ...], str]]:
        return {name: (call.tensors[name].shape, call.tensors[name].dtype.name) for name in call.operator.outputs}

    def backward(self, call: Call) -> None:
        fmt = FORMATS[call.dtype]
        shape = call.tensors["self"].shape
        rank = call.operator.spatial_rank
        plane = int(np.prod(shape[-rank:]))
        planes = int(np.prod(shape[:-rank]))
        terms = call.tensors["grad_output"].array.astype(np.float64 if fmt.precision == 53 else np.float32)
        indices = (
            call.tensors["indices"].array.astype(np.int64).reshape(planes, -1) if planes else np.zeros((0, 0), np.int64)
        )
        cells = (indices + plane * np.arange(planes)[:, None]).ravel()
        cells, terms = self.route_terms(call, cells, terms.ravel())
        sums = self.accumulate(call, cells, terms, planes * plane)
        self.store(call, self.narrow(call, sums).reshape(shape))

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return cells, terms

    def accumulate(self, call: Call, cells: np.ndarray, terms: np.ndarray, size: int) -> np.ndarray:
        sums = np.zeros(size, terms.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(sums, cells, terms)
        return sums

    def narrow(self, call: Call, sums: np.ndarray) -> np.ndarray:
        return FORMATS[call.dtype].round(sums.astype(np.float64))

    def store(self, call: Call, values: np.ndarray) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            call.tensors["grad_input"].array[...] = values

    def forward(self, call: Call) -> None:
        self.store_forward(call, *forward_maximum(planes_of(call), axes_of(call)))

    def store_forward(self, call: Call, maxima: np.ndarray, indices: np.ndarray) -> None:
        out, where = call.tensors["out"], call.tensors["indices"]
        out.array[...] = maxima.reshape(out.shape)
        where.array[...] = indices.reshape(where.shape)


def fault(
    step: str, check: str = "", base: type[Scatter] = Scatter, **attributes: Any
) -> Callable[[Callable[..., Any]], type[Scatter]]:
    """A copy of a backend that does one step as the decorated function does, with other attributes besides.

    ``check`` must notice it; it goes by the function's name.
    """

    def made(change: Callable[..., Any]) -> type[Scatter]:
        members = {step: change, "__doc__": change.__doc__, "__module__": change.__module__, **attributes}
        return type(change.__name__, (base,), members | ({"check": check} if check else {}))

    return made


def planes_of(call: Call) -> np.ndarray:
    """self, as (planes, *sizes)."""
    values, rank = call.tensors["self"].array, call.operator.spatial_rank
    return values.reshape(int(np.prod(values.shape[:-rank])), *values.shape[-rank:])


def axes_of(call: Call) -> list[Axis]:
    return list(call.attributes.axes(call.tensors["self"].shape[-call.operator.spatial_rank :]))


class Sequenced(Scatter):
    """Has streams without any device: what is ``broken`` goes as where a call is not at its place on its stream."""

    actions = tuple({ability for actions in HAZARDS.values() for ability in abilities_for(actions)})

    def __init__(self, *broken: str) -> None:
        self.broken = broken

    def run_sequence(self, actions: Actions, calls: Sequence[Call]) -> SequenceResult:
        is_broken = any(HAZARDS[hazard] == actions for hazard in self.broken)
        if is_broken and Action("copy", "outputs") in actions:
            return completed(actions, calls)
        for call in calls:
            for name in call.operator.inputs if is_broken else ():
                call.tensors[name].array[...] = 0
            self.run(call)
        return completed(actions, calls)


def completed(actions: Actions, calls: Sequence[Call]) -> SequenceResult:
    return SequenceResult((0,) * len(actions), computed=tuple(range(len(calls))))
