"""Experiments with one operator in one dtype and memory format, on gradients made to measure, and their accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from poolproof.backends.base import Backend, Status
from poolproof.references.formats import FORMATS, Float64, FloatFormat
from poolproof.references.operators import Operator
from poolproof.references.windows import Adaptive, Windowed, Windows, per_kind
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import CaseOperands, make_operands
from poolproof.suites.cases.recipes.gradients import Landing
from poolproof.suites.judging.trial import Trial

PLANES = (2, 43)
"""N and C: a plane for each width that is tried, and channels that fill no vector of any length."""

Craft = Callable[[Landing], Float64]
"""Gradients for the places where they land, one value per window."""


@dataclass(frozen=True)
class Observation:
    """One trait that was looked at: what was found, and the evidence in a sentence."""

    trait: str
    found: str
    evidence: str = ""


@dataclass(frozen=True)
class Account:
    """All about one operator in one dtype and memory format.

    ``model`` is the narrowest accumulation model, of a forward the rule, that admits every output seen, as
    `AccumulationModel` and `ForwardRule` spell them; empty where there is none. ``declared`` is what the backend says.
    ``rule`` is the forward rule of a backward that finds the maxima itself. ``disagreements`` are the sentences that
    follow from comparing them.
    """

    operator: str
    dtype: str
    memory_format: str
    observations: tuple[Observation, ...]
    model: str = ""
    declared: str = ""
    rule: str = ""
    disagreements: tuple[str, ...] = ()

    def found(self, trait: str) -> str:
        """Return what was found of a trait; empty where it was not looked at."""
        return next((seen.found for seen in self.observations if seen.trait == trait), "")

    def to_record(self) -> dict[str, Any]:
        return asdict(self)


class NotRun(Exception):
    """The implementation did not run a probe; the text says why."""


@dataclass(frozen=True)
class Experiment:
    """``layouts`` are those of the tensors that are not contiguous."""

    backend: Backend
    operator: Operator
    dtype: str
    index_dtype: str
    layouts: tuple[tuple[str, str], ...] = ()

    @property
    def fmt(self) -> FloatFormat:
        return FORMATS[self.dtype]

    def trial(self, case: Case, operands: CaseOperands | None = None) -> Trial:
        """Run the case on what its recipes make of it, or on ``operands``; `NotRun` if it was not."""
        trial = Trial(case, self.backend)
        if operands is not None:
            trial.operands = operands
        outcome = trial.baseline.outcome
        if outcome.status is not Status.COMPLETED:
            raise NotRun(f"a probe was {outcome.status}: {outcome.message}")
        return trial

    def recipe(
        self, gradient: str, crowded: bool = False, deterministic: bool = False, indices: str | None = None
    ) -> Trial:
        """Run gradients of a recipe of the suite."""
        case = self._case(crowded)
        indices = indices or case.indices
        return self.trial(replace(case, gradient=gradient, deterministic=deterministic, indices=indices))

    def crafted(self, craft: Craft, crowded: bool = False) -> Trial:
        """Run gradients made for where they land; the case spells them out."""
        drawn = self._grounds[crowded]
        gradient = self.fmt.round(craft(drawn.landing))
        case = replace(drawn.case, literals=(("grad_output", tuple(gradient.tolist())),))
        return self.trial(case, replace(drawn, case=case, gradient=gradient.reshape(case.pooled_shape)))

    def landing(self, crowded: bool = False) -> Landing:
        """Return where crafted gradients land."""
        return self._grounds[crowded].landing

    @cached_property
    def _grounds(self) -> dict[bool, CaseOperands]:
        """Where crafted gradients land: (whether crowded) -> data with other gradients."""
        return {crowded: Trial(self._case(crowded), self.backend).operands for crowded in (False, True)}

    def forward(self, values: str) -> Trial:
        """Run a forward, or a backward that finds the maxima itself, on a recipe of ``self``."""
        case = replace(self._case(False), values=values)
        return self.trial(case, make_operands(case) if self.finds_maxima else None)

    def without_cells(self) -> Trial | None:
        """Run a forward with windows that step over the input; None if there are none, or they are refused."""
        ones, others = (1,) * self.operator.spatial_rank, self.operator.spatial_rank - 1
        windows = Windowed((2, *ones[1:]), ones, (1, *(0,) * others), (2, *ones[1:]))
        is_one = self.operator.windows is Windowed and not self.operator.is_backward
        if not is_one or not self.backend.abilities(self.operator).have(windows):
            return None
        try:
            return self.trial(replace(self._case(False), shape=(*PLANES, *ones), attributes=windows))
        except NotRun:
            return None

    @property
    def finds_maxima(self) -> bool:
        """Whether it is a backward that takes no indices."""
        return self.operator.is_backward and not self.backend.abilities(self.operator).indices

    def _case(self, crowded: bool) -> Case:
        """Make overlapping windows: up to nine (27 in 3-D) gradients in a cell, or if ``crowded`` 49 to 125."""
        operator = self.operator
        length, attributes, indices = _OVERLAPPING[operator.windows](operator, crowded)
        if isinstance(attributes, Windowed) and not self.backend.abilities(operator).padding:
            attributes = replace(attributes, padding=(0,))
        shape = (*((2, 4) if crowded else PLANES), *(length,) * operator.spatial_rank)
        case = replace(Case.smallest(operator, self.dtype), index_dtype=self.index_dtype, layouts=self.layouts)
        return replace(case, shape=shape, attributes=attributes, gradient="ones", indices=indices)


def _windowed(operator: Operator, crowded: bool) -> tuple[int, Windows, str]:
    kernel = (7 if operator.spatial_rank == 2 else 5) if crowded else 3
    return 2 * kernel if crowded else 6, Windowed((kernel,), (1,), (kernel // 2,)), "shared" if crowded else "crowded"


def _adaptive(operator: Operator, crowded: bool) -> tuple[int, Windows, str]:
    length, rank = 3 if crowded else 6, operator.spatial_rank
    windows = (length * (60 if crowded else 4), *(length,) * (rank - 1)) if operator.is_backward else (4,) * rank
    return length, Adaptive(windows), "crowded"


_OVERLAPPING: Mapping[type[Windows], Callable[[Operator, bool], tuple[int, Windows, str]]] = per_kind(
    "probes", {Windowed: _windowed, Adaptive: _adaptive}
)
"""(operator, whether crowded) -> length of each axis, windows that overlap, the recipe by which most gradients meet."""
