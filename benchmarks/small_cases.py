"""Small cases per second and operator: poolproof, a naive test, and torch's own samples; with a profile by stage.

The obvious way is what a careful person writes in an afternoon. Hypothesis draws the arrays, torch computes in float32
and again in float64, and ``torch.testing.assert_close`` compares. It gets the geometries of our own cases, so that both
judge the same sizes. Everything runs on one core.
"""

from __future__ import annotations

import signal
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as hypothesis_seed
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from measuring import Figure, compared, in_turns, on_one_core
from poolproof.backends.registry import create
from poolproof.references.operators import OPERATORS, Operator
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.store import RowWriter
from poolproof.reports.waivers import Waivers, shipped
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.generation import derive_seed
from poolproof.suites.isolation.survey import survey
from poolproof.suites.judging.budget import allow_free_memory
from poolproof.suites.judging.faults import answer
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import CaseBlock
from poolproof.suites.plan.plans import Subject, Survey
from poolproof.suites.run.runner import Runner

BACKEND, DTYPE, INDEX_DTYPE, ASPECT = "torch-cpu", "float32", "int64", "values"

NEVER_EXPIRES = date(2000, 1, 1)

OPERATORS_OF_TORCH = tuple(name for name, operator in OPERATORS.items() if operator.aten)


def measure_rates(operators: Sequence[str], cases: int, rounds: int) -> Iterator[Figure]:
    """Yield the cases per second of each operator, and the ratio to each of the others."""
    figures: list[Figure] = []
    with on_one_core(), _threads(1), tempfile.TemporaryDirectory() as folder:
        ours = _Ours(Path(folder))
        try:
            ours.judge(operators[0], 20, 0)  # start-up
            for operator in operators:
                figures += _rates_of(OPERATORS[operator], ours, cases, rounds)
        finally:
            ours.close()
    yield from figures
    for name in _OTHERS:
        ratios = [figure.ratio for figure in figures if figure.beside == name and figure.ratio is not None]
        if ratios:
            ratio = statistics.median(ratios)
            yield Figure("small cases", "median of the operators", "", None, name, None, ratio, _MEDIAN_BOUND[name])


_OTHERS = OBVIOUS, OPINFO = "the obvious way", "OpInfo samples"

_EACH_BOUND = {OBVIOUS: ">= 2", OPINFO: ""}
_MEDIAN_BOUND = {OBVIOUS: ">= 4", OPINFO: ""}
"""Least ratio of our speed to the other, for each operator and for their median.

Samples of torch have a few dozen elements, and one standard: they only show the least cost of a case.
"""


def _rates_of(operator: Operator, ours: _Ours, cases: int, rounds: int) -> Iterator[Figure]:
    drawn = [question.case for question in block_of(ours.surveyed, operator.name, cases, 0).questions()]
    geometries = [case for case in drawn if 0 not in case.shape]
    samples = _Samples.of(operator)
    others: dict[str, Callable[[], float]] = {OBVIOUS: lambda: _obvious_way(geometries, cases)}
    if samples is not None:
        others[OPINFO] = lambda: samples.judge(cases)
    numbers = iter(range(1, rounds + 1))
    taken = in_turns(rounds, {"ours": lambda: ours.judge(operator.name, cases, next(numbers)), **others})
    for name in others:
        figure = compared("small cases", operator.name, "cases/s", taken["ours"], name, taken[name])
        yield replace(figure, bound=_EACH_BOUND[name])
    if samples is None:
        why = "OpInfo needs the package expecttest"
        yield Figure("small cases", operator.name, "cases/s", None, OPINFO, note=why)


def block_of(surveyed: Survey, operator: str, cases: int, seed: int) -> CaseBlock:
    """Return a block of ``cases`` cases, as in a run."""
    return CaseBlock(_subject(surveyed, operator), CASE_ASPECTS[ASPECT], 0, cases, derive_seed("speed", operator, seed))


def _subject(surveyed: Survey, operator: str) -> Subject:
    (subject,) = (
        subject
        for subject in surveyed.subjects
        if (subject.operator.name, subject.dtype, subject.index_dtype) == (operator, DTYPE, INDEX_DTYPE)
    )
    return subject


class _Ours:
    """A runner as in a run: with a memory budget, a sandbox, waivers, rows on disk."""

    def __init__(self, folder: Path) -> None:
        allow_free_memory()
        self.surveyed = survey(BACKEND)
        self._rows = RowWriter(folder, "speed")
        waivers = Waivers(shipped(), NEVER_EXPIRES)

        def waive(row: Row) -> Row:
            return waivers.apply(row, self.surveyed.environment)

        self._runner = Runner(folder, "speed", waive, self._rows.append, 60.0, shrinks=False)

    def judge(self, operator: str, cases: int, seed: int) -> float:
        """Return the cases per second, drawn, judged with all usual checks and recorded."""
        started = time.perf_counter()
        result = self._runner.judge(block_of(self.surveyed, operator, cases, seed))
        return result.rows / (time.perf_counter() - started)

    def close(self) -> None:
        self._runner.close()
        self._rows.close()


def _obvious_way(geometries: Sequence[Case], cases: int) -> float:
    """Return the cases per second, drawn by Hypothesis and compared with float64."""
    judged = Counter[str]()

    @hypothesis_seed(0)
    @settings(
        max_examples=cases,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(_arrays(geometries))
    def test(drawn: tuple[Case, np.ndarray, np.ndarray]) -> None:
        judged["cases"] += 1
        case, values, gradient = drawn
        _compare(case, torch.from_numpy(values), torch.from_numpy(gradient))

    started = time.perf_counter()
    test()
    return judged["cases"] / (time.perf_counter() - started)


@st.composite
def _arrays(draw: Any, geometries: Sequence[Case]) -> tuple[Case, np.ndarray, np.ndarray]:
    """Draw a geometry, and float32 arrays of the shapes of self and grad_output."""
    case = draw(st.sampled_from(geometries))
    values = draw(arrays(np.float32, case.shape, elements=_ELEMENTS))
    gradient = draw(arrays(np.float32, case.pooled_shape, elements=_ELEMENTS)) if case.api.is_backward else np.zeros(1)
    return case, values, gradient


_ELEMENTS = st.floats(-1000.0, 1000.0, width=32, allow_subnormal=False)


def _compare(case: Case, values: torch.Tensor, gradient: torch.Tensor) -> None:
    """Compare the operator in float32 and float64; sums of many terms are not always close: false alarms."""
    with suppress(AssertionError):
        _assert_close(_computed(case, values, gradient), _computed(case, values.double(), gradient.double()))


def _assert_close(outputs: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    for output, exact in zip(outputs, expected, strict=True):
        torch.testing.assert_close(output, exact, check_dtype=False)


def _computed(case: Case, values: torch.Tensor, gradient: torch.Tensor) -> Sequence[torch.Tensor]:
    """Compute the operator's outputs; a backward takes the indices of its forward."""
    aten, api = torch.ops.aten, case.api
    producer = OPERATORS[api.producer] if api.producer else api
    made = getattr(aten, str(producer.aten))(values, *producer.passed(case.attributes))
    if not api.is_backward:
        return made
    return [getattr(aten, str(api.aten))(gradient, values, *api.passed(case.attributes), made[1])]


@dataclass(frozen=True)
class _Samples:
    """The samples of an operator in torch's operator database, judged in the obvious way."""

    info: Any
    is_backward: bool

    @classmethod
    def of(cls, operator: Operator) -> _Samples | None:
        """Return the samples; None if the database cannot be read."""
        database = _operator_database()
        if database is None:
            return None
        kind = "adaptive_max_pool" if "Adaptive" in operator.name else "max_pool"
        return cls(database[f"nn.functional.{kind}{operator.spatial_rank}d"], operator.is_backward)

    def judge(self, cases: int) -> float:
        """Return the cases per second, made and judged; the samples repeat."""
        started = time.perf_counter()
        for sample in islice(self._made_again(), cases):
            _assert_close(self._computed(sample, torch.float32), self._computed(sample, torch.float64))
        return cases / (time.perf_counter() - started)

    def _made_again(self) -> Iterator[Any]:
        while True:
            yield from self.info.sample_inputs("cpu", torch.float32)

    def _computed(self, sample: Any, dtype: torch.dtype) -> Sequence[torch.Tensor]:
        values = sample.input.detach().to(dtype).requires_grad_(self.is_backward)
        made = self.info.op(values, *sample.args, **sample.kwargs)
        outputs = made if isinstance(made, tuple) else (made,)
        if self.is_backward:
            outputs[0].sum().backward()
            return [values.grad]
        return outputs


@cache
def _operator_database() -> dict[str, Any] | None:
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    except ImportError:
        return None
    return {info.name: info for info in op_db}


STAGES = (
    ("record", ("reports/rows/",)),
    ("draw", ("suites/cases/generation.py", "suites/cases/strategies.py")),
    ("describe", ("suites/judging/case_question.py:describe",)),
    ("backend", ("backends/",)),
    ("operands", ("suites/cases/operands.py", "suites/cases/recipes/", "references/layouts.py")),
    (
        "facts and criterion",
        ("references/forward.py", "references/criterion.py", "references/kernels/"),
    ),
    (
        "measure",
        ("suites/judging/measure.py", "references/summary.py", "references/deviations.py"),
    ),
    ("checks", ("suites/judging/",)),
)
"""Stages of a case by their code: folders, files, or functions of a file. The first match counts."""

_SAMPLE_SECONDS = 0.001


def measure_stages(operators: Sequence[str], cases: int, rounds: int) -> Iterator[Figure]:
    """Yield the microseconds of processor time of a case in each stage, in one process, over all operators."""
    allow_free_memory()
    surveyed, backend = survey(BACKEND), create(BACKEND)
    with on_one_core(), _threads(1), tempfile.TemporaryDirectory() as folder:
        rows = RowWriter(Path(folder), "stages")

        def judge_all(cases: int, seed: int) -> None:
            for operator in operators:
                for question in block_of(surveyed, operator, cases, seed).questions():
                    rows.append(answer(question, backend))

        judge_all(20, 0)  # start-up
        started = time.process_time()
        with _sampled() as samples:
            for number in range(1, rounds + 1):
                judge_all(cases, number)
        each = 1e6 * (time.process_time() - started) / (rounds * cases * len(operators))
        rows.close()
    for stage in (*(name for name, _ in STAGES), _REST):
        share = samples[stage] / max(samples.total(), 1)
        yield Figure("stages", stage, "us/case", each * share, note=f"{share:.0%} of {each:,.0f} us")


@contextmanager
def _sampled() -> Iterator[Counter[str]]:
    """Count samples by stage: the processor time between two samples counts for the second."""
    counts: Counter[str] = Counter()

    def look(_signal: int, frame: FrameType | None) -> None:
        counts[_stage_of(frame)] += 1

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE_SECONDS, _SAMPLE_SECONDS)
    try:
        yield counts
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


_REST = "rest"


def _stage_of(frame: FrameType | None) -> str:
    """Return the stage of the innermost frame that belongs to one."""
    while frame is not None:
        stage = _stage_at(frame.f_code.co_filename, frame.f_code.co_name)
        if stage != _REST:
            return stage
        frame = frame.f_back
    return _REST


@cache
def _stage_at(path: str, function: str) -> str:
    place = f"{path}:{function}"
    return next((name for name, places in STAGES if any(f"/{part}" in place for part in places)), _REST)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
