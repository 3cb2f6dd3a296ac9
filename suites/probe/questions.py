"""Probes as questions to a sandbox, so that an implementation which dies of one costs one account."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from poolproof.backends.base import Backend
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.operators import find_operator
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.judging.question import Aspect, Question, verdict
from poolproof.suites.judging.trial import ProducerFailed
from poolproof.suites.plan.plans import Subject
from poolproof.suites.probe import indices, sums
from poolproof.suites.probe.experiment import Account, Experiment, NotRun, Observation

MEMORY_FORMATS = ("contiguous", "channels_last")


def take_account(
    backend: Backend, operator: str, dtype: str, index_dtype: str, memory_format: str = "contiguous"
) -> Account:
    """Probe one operator in one dtype and memory format; `NotRun` if the implementation does not run the probes."""
    api = find_operator(operator)
    layouts = tuple((name, memory_format) for name in sorted(api.strided)) if memory_format != "contiguous" else ()
    experiment = Experiment(backend, api, dtype, index_dtype, layouts)
    account = Account(operator, dtype, memory_format, ())
    if not experiment.finds_maxima:
        return _completed(experiment, account)
    seen, rule, _, says = _rule(experiment)
    try:
        account = _completed(experiment, account)
    except (NotRun, ProducerFailed) as error:
        account = replace(account, observations=(Observation("sums", "not judged", str(error)),))
    observations, disagreements = (*seen, *account.observations), (*says, *account.disagreements)
    return replace(account, observations=observations, rule=rule or "none fits", disagreements=disagreements)


def _completed(experiment: Experiment, account: Account) -> Account:
    """Add how a backward adds, or by which rule a forward picks indices."""
    look = _backward_account if experiment.operator.is_backward else _forward_account
    exact = _exact_data(experiment)
    if exact.found == "right":
        return look(experiment, replace(account, observations=(exact,)))
    wrong = f"exact data do not arrive: {exact.evidence}"
    misread = [name for name, layout in experiment.layouts if not _arrives(experiment, ((name, layout),))]
    layouts = tuple((name, layout) for name, layout in experiment.layouts if name not in misread)
    if not (misread and layouts and _arrives(experiment, layouts)):
        return replace(account, observations=(exact,), disagreements=(wrong,))
    found = Observation("exact data", f"wrong unless {' and '.join(misread)} are contiguous", exact.evidence)
    seen = look(replace(experiment, layouts=layouts), replace(account, observations=(found,)))
    return replace(seen, disagreements=(wrong, *seen.disagreements))


def _arrives(experiment: Experiment, layouts: tuple[tuple[str, str], ...]) -> bool:
    return _exact_data(replace(experiment, layouts=layouts)).found == "right"


def _exact_data(experiment: Experiment) -> Observation:
    return (sums if experiment.operator.is_backward else indices).exact_data(experiment)


def _forward_account(experiment: Experiment, account: Account) -> Account:
    seen, model, declared, says = _rule(experiment)
    observations = (*account.observations, *seen)
    return replace(account, observations=observations, model=model, declared=declared, disagreements=says)


def _rule(experiment: Experiment) -> tuple[list[Observation], str, str, tuple[str, ...]]:
    """Find the rule by which indices are picked: what was seen, that rule, the declared one, where they disagree."""
    declared = experiment.backend.forward_rule(experiment.forward("ties").baseline.call)
    seen, rule = indices.traits(experiment)
    takes_several = rule.ties.takes_several and seen[0].found != indices.UNKNOWN
    if experiment.finds_maxima and declared.leaves_open and not takes_several:  # what it takes is read in each case
        return seen, str(declared), str(declared), ()
    if unknown := " and ".join(each.trait for each in seen if each.found == indices.UNKNOWN):
        closest = f"no known rule fits the observed {unknown} ({rule} comes closest)"
        judged = f"data without {unknown} are judged as usual, other data by the declared rule"
        return seen, "", str(declared), (f"declared {declared}, but {closest}: {judged}",)
    if indices.NO_CELL not in {each.trait for each in seen}:
        rule = replace(rule, empty_is_lowest=declared.empty_is_lowest)
    says = (f"declared {declared}, but observed {rule}",) if rule != declared else ()
    return seen, str(rule), str(declared), says


def _backward_account(experiment: Experiment, account: Account) -> Account:
    rounding = sums.rounding(experiment)
    bits = sums.kept_bits(experiment)
    kind, accumulation = sums.accumulation(experiment, bits, rounding.found)
    seen = [accumulation, rounding, sums.subnormals(experiment), *sums.specials(experiment)]
    seen += [sums.negative_zero(experiment), *(sums.determinism(experiment, demanded) for demanded in (False, True))]
    account = replace(account, observations=(*account.observations, *seen))
    model = None
    if kind is not None and rounding.found == "even":
        subnormals, saturates = account.found("subnormals"), account.found("overflow") == "saturates"
        flushed, cast_flushes = subnormals == "flushed", subnormals == "flushed by the cast"
        model = replace(kind, flushes_subnormals=flushed, cast_flushes=cast_flushes, saturates=saturates)
    return _held_against_declaration(experiment, account, model)


def _held_against_declaration(experiment: Experiment, account: Account, model: AccumulationModel | None) -> Account:
    """Add the model, if it admits all that was seen, and what the backend declares otherwise."""
    trials = sums.mixture(experiment)
    declared = trials[0].model
    says = []
    if model is not None and (rejected := sums.admits(model, trials)):
        says.append(f"no model admits the observed sums: {model} rejects {rejected}")
        model = None
    elif model is None:
        # the accumulation comes before the rounding: a sum that is too narrow has none of those modes either
        accumulation, rounding = account.found("accumulation"), account.found("rounding")
        is_blamed = accumulation in ("too narrow", "in between")
        blamed = f"accumulation: {accumulation}" if is_blamed else f"rounding: {rounding}"
        says.append(f"no model admits this {blamed}")
    if rejected := sums.admits(declared, trials):
        says.append(f"declared {declared} rejects {rejected}")
    elif model is not None and model != declared:
        wider = f"declared {declared}, but {model} admits all observed sums"
        says.append(f"{wider}: verdicts are weaker than they could be")
    says += [f"{trait}: {account.found(trait)}" for trait in ("infinity", "NaN") if account.found(trait) != "kept"]
    if trials[0].is_deterministic and account.found("repetitions") == "differ":
        says.append("declared deterministic, but repetitions differ")
    elif account.found("repetitions in deterministic mode") == "differ":
        says.append("repetitions differ in deterministic mode")
    return replace(account, model=str(model or ""), declared=str(declared), disagreements=tuple(says))


PROBE = Aspect("probe", "outputs show how a kernel adds, rounds, overflows and picks indices", ())


@dataclass(frozen=True)
class ProbeQuestion(Question):
    """One account, as a question like any other."""

    operator: str
    dtype: str
    index_dtype: str
    memory_format: str
    aspect: Aspect = PROBE
    block: str = ""

    @property
    def id(self) -> str:
        return f"{self.operator}-{self.dtype}-{self.index_dtype}-{self.memory_format}"

    @property
    def built_for(self) -> str:
        return self.dtype

    def to_line(self) -> str:
        return json.dumps({"operator": self.operator, "dtype": self.dtype, "memory_format": self.memory_format})

    def describe(self) -> Row:
        return {"operator": self.operator, "dtype": self.dtype, "index_dtype": self.index_dtype, "account": None}

    def judge(self, backend: Backend) -> Row:
        """Return no row of the report, but the account, or the reason why there is none."""
        try:
            account = take_account(backend, self.operator, self.dtype, self.index_dtype, self.memory_format)
        except NotRun as error:
            return self.describe() | verdict(Verdict.NOT_RUN, str(error))
        return self.describe() | verdict(Verdict.CONFORMS) | {"account": account}


def probe_questions(subjects: Sequence[Subject], formats: Sequence[str] = MEMORY_FORMATS) -> list[ProbeQuestion]:
    """Make one question for each operator, dtype and memory format that is supported, in one dtype of indices."""
    found: dict[tuple[str, str, str], ProbeQuestion] = {}
    for subject in subjects:
        if subject.unsupported is None:
            reaches = subject.abilities.reaches
            for memory_format in (each for each in formats if each == MEMORY_FORMATS[0] or reaches(each)):
                key = (subject.operator.name, subject.dtype, memory_format)
                found.setdefault(key, ProbeQuestion(key[0], key[1], subject.index_dtype, memory_format))
    return list(found.values())
