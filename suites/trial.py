"""One case on one backend: the runs that checks ask for, and the exact truth they are held against.

Runs are made on demand and kept, so that two checks that need the same variation share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poolproof.backends.base import Backend, Call, Outcome, Status
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.comparison import Comparison
from poolproof.references.criterion import Acceptance, acceptance
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.forward import forward_maximum
from poolproof.references.geometry import Int64
from poolproof.suites.case import Case
from poolproof.suites.layouts import Layout
from poolproof.suites.operands import POISONS, Contents, contents, place


@dataclass(frozen=True, eq=False)
class Run:
    """One executed call. ``before`` holds a copy of every input buffer as it was when the call started."""

    call: Call
    outcome: Outcome
    before: Mapping[str, NDArray[np.uint8]]

    def output(self, name: str) -> NDArray:
        """The output tensor as the call left it, in logical order."""
        return self.call.tensors[name].array


class RunFailed(Exception):
    """A variation of a case that completed did not complete itself."""


class Trial:
    """``case`` on ``backend``. ``repeats`` is how many further runs the determinism check may spend."""

    def __init__(self, case: Case, backend: Backend, repeats: int = 1) -> None:
        self.case = case
        self.backend = backend
        self.repeats = repeats
        self._runs: dict[object, Run] = {}

    @cached_property
    def content(self) -> Contents:
        return contents(self.case)

    @property
    def fmt(self) -> FloatFormat:
        return FORMATS[self.case.dtype]

    @cached_property
    def first(self) -> Run:
        """The case as it is, on memory filled with the first poison."""
        return self._execute(place(self.content, POISONS[0]))

    @cached_property
    def model(self) -> AccumulationModel:
        return self.backend.accumulation(self.first.call)

    @cached_property
    def is_deterministic(self) -> bool:
        return self.backend.is_deterministic(self.first.call)

    @cached_property
    def acceptance(self) -> Acceptance:
        """What each cell of grad_input may hold, flat; backward operators only."""
        return acceptance(self.content.sums, self.fmt, self.model)

    @cached_property
    def comparison(self) -> Comparison:
        """grad_input of the first run beside the exact sums; backward operators only."""
        return Comparison(self.gradient_input, self.content.sums, self.fmt)

    @cached_property
    def gradient_input(self) -> Float64:
        """grad_input of the first run as float64, flat."""
        return self.first.output("grad_input").astype(np.float64).ravel()

    @cached_property
    def accepted(self) -> NDArray[np.bool_]:
        return self.acceptance.accepts(self.gradient_input)

    @cached_property
    def maximum(self) -> tuple[Float64, Int64]:
        """(maxima, indices) that a forward owes, of shape (planes, *windows)."""
        return forward_maximum(self.content.values.reshape(self.case.planes, *self.case.spatial_shape), self.case.axes)

    def repetition(self, number: int = 1) -> Run:
        """The same call once more, on other poison for odd numbers."""
        return self._kept(("repeat", number), lambda: place(self.content, POISONS[number % 2]))

    @property
    def repetitions(self) -> list[Run]:
        """The repetitions made so far."""
        return [run for key, run in self._runs.items() if isinstance(key, tuple) and key[0] == "repeat"]

    def with_layouts(self, layouts: Mapping[str, Layout]) -> Run:
        """The same content in other layouts; tensors not named are contiguous."""
        key = ("layouts", tuple(sorted((name, str(layout)) for name, layout in layouts.items())))
        return self._kept(key, lambda: place(self.content, POISONS[0], layouts=layouts))

    def with_index_dtype(self, index_dtype: str) -> Run:
        return self._kept(
            ("index_dtype", index_dtype), lambda: place(self.content, POISONS[0], index_dtype=index_dtype)
        )

    def with_scale(self, exponent: int) -> Run:
        """Every gradient multiplied by 2**exponent."""
        return self._kept(("scale", exponent), lambda: place(self.content.scaled(exponent), POISONS[0]))

    def _kept(self, key: object, build: object) -> Run:
        if key not in self._runs:
            run = self._execute(build())  # type: ignore[operator]
            if run.outcome.status is not Status.COMPLETED:
                raise RunFailed(
                    f"the case runs, but varied by {key} it ends as {run.outcome.status}: {run.outcome.message}"
                )
            self._runs[key] = run
        return self._runs[key]

    def _execute(self, call: Call) -> Run:
        before = {name: call.tensors[name].buffer.copy() for name in call.operator.inputs}
        return Run(call, self.backend.run(call), before)
