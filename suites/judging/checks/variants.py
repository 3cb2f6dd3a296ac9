"""Checks of other ways to make a call: again, in other layouts, modes, index dtypes, and among other calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from poolproof.backends.base import Status, can_run
from poolproof.references.sequences import HAZARDS, MODES, Actions, calls_in
from poolproof.suites.cases.case import Case
from poolproof.suites.judging.checks.maxima import maximum, wrong_maxima
from poolproof.suites.judging.checks.registry import check, is_forward_with_readable_indices, is_full_backward
from poolproof.suites.judging.checks.sums import interval, wrong_sums
from poolproof.suites.judging.comparing import other_bits, other_shape, other_values
from poolproof.suites.judging.findings import Mismatch
from poolproof.suites.judging.trial import ExecutedCall, ProducerFailed, Trial, VariationFailed


@check(
    "the same call gives the same bits, whatever was in memory before",
    is_shown_by=lambda trial: trial.is_deterministic,
)
def repeat(trial: Trial) -> Mismatch | None:
    for number in range(1, trial.repeats + 1):
        run, context = trial.variation("repeat", number), f"repetition {number}"
        if found := other_bits(trial, run, f"in {context}"):
            return with_blame(trial, found, {"the first call": trial.baseline, context: run})
    return None


@check(
    "the same content laid out contiguously gives the same values",
    lambda case: bool(case.layouts),
    leaves_memory_intact=True,
)
def layout_invariance(trial: Trial) -> Mismatch | None:
    contiguous = trial.variation("layouts")
    found = other_values(trial, trial.baseline, contiguous, reason="as with the contiguous layout")
    return with_blame(trial, found, {"the call as laid out": trial.baseline, "the contiguous one": contiguous})


@check(
    "another way to make the call gives the same values and stays in its memory",
    is_shown_by=lambda trial: bool(trial.backend.modes) or _can_run_any(trial, MODES),
)
def modes(trial: Trial) -> Mismatch | None:
    for mode in trial.backend.modes:
        run, context = trial.in_mode(mode), f"made with {mode}"
        if run and (found := _disturbed(trial, run, context)):
            return found
    return _in_sequences(trial, MODES)


def is_held_to_criterion(case: Case) -> bool:
    """Tell whether `wrong_by_itself` can judge runs of the case."""
    return is_full_backward(case) or is_forward_with_readable_indices(case)


@check(
    "the same call in other code (a variant) gives the expected result, too",
    is_held_to_criterion,
    lambda trial: bool(trial.backend.variants),
)
def variants(trial: Trial) -> Mismatch | None:
    for variant in trial.backend.variants:
        run, context = trial.in_mode(variant), f"made with {variant}"
        if run and (found := wrong_by_itself(trial, run, context)):
            return found
    return None


def wrong_by_itself(trial: Trial, run: ExecutedCall, context: str) -> Mismatch | None:
    """Return the mismatch of a run by the criterion, independent of the first run."""
    if other := other_shape(run):
        return replace(other, message=f"{context}: {other.message}")
    if trial.case.api.is_backward:
        return wrong_sums(trial, run, trial.operands, context)
    return wrong_maxima(trial, run, context)


def with_blame(trial: Trial, mismatch: Mismatch | None, runs: Mapping[str, ExecutedCall]) -> Mismatch | None:
    """Add to a difference between ``runs``, by name, which of them are wrong by the criterion."""
    if not mismatch or not is_held_to_criterion(trial.case):
        return mismatch
    wrong = [name for name, run in runs.items() if wrong_by_itself(trial, run, name)]
    blame = f"by the criterion {' and '.join(wrong) or 'none'} {'are' if len(wrong) > 1 else 'is'} wrong"
    return replace(mismatch, message=f"{mismatch.message}; {blame}")


@check(
    "work queued before, behind and beside a call on streams changes nothing",
    is_shown_by=lambda trial: _can_run_any(trial, HAZARDS),
)
def streams(trial: Trial) -> Mismatch | None:
    return _in_sequences(trial, HAZARDS)


def _can_run_any(trial: Trial, sequences: Mapping[str, Actions]) -> bool:
    return any(can_run(trial.backend, actions) for actions in sequences.values())


def _in_sequences(trial: Trial, sequences: Mapping[str, Actions]) -> Mismatch | None:
    """Return the mismatch of the call, or of one on other data, in a sequence.

    A plain call on the other data is made first: its own faults are not those of the sequence.
    """
    other = Trial(replace(trial.case, seed=trial.case.seed ^ 1, literals=()), trial.backend)
    for name, actions in sequences.items():
        if not can_run(trial.backend, actions):
            continue
        if calls_in(actions) > 1 and other.baseline.outcome.status is not Status.COMPLETED:
            continue
        for made, run in trial.in_sequence(actions, other, f"made {name}"):
            if found := _disturbed(made, run, f"made {name}"):
                return found
    return None


def _disturbed(trial: Trial, run: ExecutedCall, context: str) -> Mismatch | None:
    """Return the mismatch of a run that was made as ``context`` says."""
    seen = () if trial.baseline.outcome.sanitizer else run.outcome.sanitizer  # `sanitizer` reports the first run's
    if reports := run.outcome.guard_violations or seen:
        return Mismatch(f"{context}: {'; '.join(reports)}")
    found = other_values(trial, run, trial.baseline, context, "as the plain call gave")
    return with_blame(trial, found, {"the plain call": trial.baseline, f"the call {context}": run})


@check("earlier calls change nothing")
def state(trial: Trial) -> Mismatch | None:
    """Also check the calls after it: of two calls that differ in one parameter, both must be right."""
    after = trial.after(trial.neighbours)
    found = other_values(trial, after, trial.baseline, "after other calls", "as before them")
    found = with_blame(trial, found, {"the call before them": trial.baseline, "the call after them": after})
    wrong = interval if trial.case.api.is_backward else maximum
    if found or wrong(trial):
        return found
    for cases in trial.pairs:
        before = "this call"
        for case in cases:
            made = Trial(case, trial.backend)
            try:
                made.operands  # noqa: B018  (drawn once and kept)
            except ProducerFailed:
                break  # its own data, such as ties, cannot be judged
            if made.baseline.outcome.status is not Status.COMPLETED:
                break
            if found := wrong(made):
                return replace(found, message=f"after {before}, that of {case.to_json()} is wrong: {found.message}")
            before = f"the call of {case.to_json()}"
    return None


def _takes_other_indices(trial: Trial) -> bool:
    """Tell whether the call runs with another index dtype; False after a refusal that is nobody's fault."""
    try:
        return bool(trial.other_index_dtype and trial.variation("index_dtype", trial.other_index_dtype))
    except VariationFailed as error:
        if error.excuse:
            return False
        raise


@check("int32 and int64 indices give the same values", is_shown_by=_takes_other_indices)
def index_dtype_invariance(trial: Trial) -> Mismatch | None:
    other = trial.other_index_dtype
    run, own = trial.variation("index_dtype", other), trial.case.index_dtype
    found = other_values(trial, trial.baseline, run, reason=f"as with {other} indices")
    return with_blame(trial, found, {f"the call with {own} indices": trial.baseline, f"that with {other}": run})
