"""The probe says of every kernel what its switches say."""

import os

import numpy as np
import pytest

import forked
from forked import Command
from places import ROOT
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.formats import BFLOAT16, FLOAT16, FORMATS
from poolproof.references.forward import forward_indices
from poolproof.references.forward_rule import ForwardRule
from poolproof.references.indices import FLAT
from poolproof.references.operators import BACKWARDS
from poolproof.suites.plan.plans import subjects
from poolproof.suites.probe.experiment import Account
from poolproof.suites.probe.questions import probe_questions, take_account
from poolproof.suites.probe.sums import ROUNDINGS
from scatter import Scatter, axes_of, fault, planes_of
from scatter_backends import Picking, Plain, WithoutPadding, lost, unrepeatable
from switchable_backend import Switchable, Switches

OPERATORS = [operator.name for operator in BACKWARDS if operator.indices is FLAT]
WINDOWED, ADAPTIVE = "MaxPool2dWithIndicesBackward", "AdaptiveMaxPool2dBackward"


def account(switches: Switches, dtype: str, operator: str = WINDOWED, **options) -> Account:
    return take_account(Switchable(switches, **options), operator, dtype, "int64")


def mixed(tiles: int) -> AccumulationModel:
    return AccumulationModel("mixed", tiles)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16"))
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("model", (ACC32, NATIVE, mixed(2), mixed(4)), ids=str)
def test_the_model_is_the_one_that_is_switched_on(model: AccumulationModel, operator: str, dtype: str) -> None:
    found = account(Switches(model), dtype, operator)
    assert (found.found("accumulation"), found.model, found.disagreements) == (str(model), str(model), ())


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("operator", OPERATORS)
def test_wide_outputs_are_their_own_accumulators(operator: str, dtype: str) -> None:
    found = account(Switches(), dtype, operator)
    assert found.model == "acc32"
    assert f"keep {FORMATS[dtype].precision} bits" in found.observations[1].evidence


@pytest.mark.parametrize("dtype", ("float32", "float16", "bfloat16"))
@pytest.mark.parametrize("model", (ACC32, NATIVE, mixed(4)), ids=str)
@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_the_rounding_is_the_one_that_is_switched_on(rounding: str, model: AccumulationModel, dtype: str) -> None:
    found = account(Switches(model, rounding), dtype)
    assert found.found("rounding") == rounding
    if dtype != "float32":
        hidden = model.kind != "acc32" and rounding in ("away from zero", "odd")
        assert found.found("accumulation") == ("native or mixed" if hidden else str(model))
    assert (found.model == "") == (rounding != "even")
    if rounding != "even":
        assert f"no model admits this rounding: {rounding}" in found.disagreements
        assert any(text.startswith(f"declared {model} rejects") for text in found.disagreements)


@pytest.mark.parametrize("accumulator", (FLOAT16, BFLOAT16), ids=lambda fmt: fmt.name)
def test_an_accumulator_narrower_than_its_output_is_told_with_its_bits(accumulator) -> None:
    found = account(Switches(ACC32, accumulator=accumulator), "float32")
    assert found.found("accumulation") == "too narrow"
    assert f"partial sums keep {accumulator.precision} bits" in found.observations[1].evidence
    assert found.model == ""
    assert "no model admits this accumulation: too narrow" in found.disagreements


FLUSHING, CAST_FLUSHES = {"flushes_subnormals": True}, {"cast_flushes": True}
SATURATING = AccumulationModel("acc32", saturates=True)


@pytest.mark.parametrize("operator", (ADAPTIVE, WINDOWED))
@pytest.mark.parametrize(
    ("dtype", "switches", "trait", "told"),
    [
        ("float32", Switches(AccumulationModel("acc32", **FLUSHING)), "subnormals", "flushed"),
        ("bfloat16", Switches(AccumulationModel("native", **FLUSHING)), "subnormals", "flushed"),
        ("bfloat16", Switches(AccumulationModel("acc32", **FLUSHING)), "subnormals", "flushed"),
        ("float16", Switches(AccumulationModel("acc32", **CAST_FLUSHES)), "subnormals", "flushed by the cast"),
        ("bfloat16", Switches(AccumulationModel("acc32", **CAST_FLUSHES)), "subnormals", "flushed by the cast"),
        ("float16", Switches(), "subnormals", "kept"),
        *((dtype, Switches(SATURATING), "overflow", "saturates") for dtype in ("float16", "bfloat16")),
        *((dtype, Switches(), "overflow", "infinity") for dtype in ("float16", "bfloat16")),
        *((dtype, Switches(), "-0", "becomes +0") for dtype in ("float16", "bfloat16")),
        *((dtype, Switches(keeps_negative_zero=True), "-0", "kept") for dtype in ("float16", "bfloat16")),
    ],
)
def test_a_trait_is_the_one_that_is_switched_on(
    dtype: str, switches: Switches, trait: str, told: str, operator: str
) -> None:
    found = account(switches, dtype, operator)
    assert (found.found(trait), found.model) == (told, str(switches.model))
    assert not found.disagreements or switches.model == SATURATING, "which it does to infinities of its inputs, too"


def test_a_wrong_declaration_is_told_with_what_it_rejects() -> None:
    (said,) = account(Switches(NATIVE), "float16", declared=ACC32).disagreements
    assert said.startswith("declared acc32 rejects")
    (said,) = account(Switches(ACC32), "float16", declared=NATIVE).disagreements
    assert said == "declared native, but acc32 admits all observed sums: verdicts are weaker than they could be"


def test_who_has_no_padding_is_probed_without() -> None:
    assert take_account(WithoutPadding(), "MaxPool2dWithIndices", "float16", "int64").model == "first"
    assert take_account(WithoutPadding(), WINDOWED, "float16", "int64").model == "acc32"
    assert {asked.memory_format for asked in probe_questions(subjects("plain", Plain()))} == {"contiguous"}


def test_nothing_is_said_of_a_kernel_that_loses_gradients() -> None:
    found = take_account(lost(), WINDOWED, "float16", "int64")
    assert found.found("exact data") == "wrong"
    assert (found.model, found.declared) == ("", "")


def test_repetitions_that_differ_contradict_a_declaration() -> None:
    found = take_account(unrepeatable(), WINDOWED, "float32", "int64")
    assert found.found("repetitions") == "differ"
    assert "declared deterministic, but repetitions differ" in found.disagreements


RULES = ("first", "last", "first-nan", "last+leading-nan", "leading-nan+none", "no-nan+lowest", "ftz")


class Accepting(Picking):
    """Takes windows without a cell."""

    def objection(self, call):
        return ""


@fault("store_forward", base=Accepting)
def zero_for_no_cell(self, call, maxima, indices):
    """Gives windows without a cell the maximum 0."""
    Scatter.store_forward(self, call, np.where(indices < 0, 0, maxima).astype(maxima.dtype), indices)


@pytest.mark.parametrize(("text", "words"), [("first", "-inf"), ("last+lowest-if-empty", "the lowest number")])
def test_the_maximum_of_windows_without_a_cell_is_told_where_there_are_some(text: str, words: str) -> None:
    rule = ForwardRule.parse(text)
    for backend, operator, told in (
        (Accepting(rule, declared=rule), "MaxPool3dWithArgmax", words),
        (Accepting(rule, declared=rule), "AdaptiveMaxPool2d", ""),
        (Picking(rule, declared=rule), "MaxPool2dWithIndices", ""),
    ):
        found = take_account(backend, operator, "float16", "int64")
        assert (found.found("no cell"), found.model, found.disagreements) == (told, text, ())
    found = take_account(zero_for_no_cell(rule, declared=rule), "MaxPool2dWithIndices", "float16", "int64")
    assert (found.found("no cell"), found.model) == ("none of those known", "")


@pytest.mark.parametrize("operator", ("MaxPool3dWithArgmax", "AdaptiveMaxPool2d"))
@pytest.mark.parametrize("rule", [*RULES, "last+first-nan+ftz", "no-nan+lowest-origin"])
def test_the_rule_of_a_forward_is_the_one_that_it_picks_by(rule: str, operator: str) -> None:
    picks = ForwardRule.parse(rule)
    found = take_account(Picking(picks, declared=picks), operator, "float16", "int64")
    assert (found.model, found.declared, found.disagreements) == (rule, rule, ())
    (said,) = take_account(Picking(picks, declared=OTHER), operator, "float16", "int64").disagreements
    assert said == f"declared {OTHER}, but observed {rule}"


OTHER = ForwardRule.parse("last+any-nan")


@fault("store_forward", base=Picking)
def arbitrary(self, call, maxima, indices):
    """Takes now the first, now the last of several maxima, and of several NaN."""
    rules = map(ForwardRule.parse, ("first-nan", "last"))
    first, last = (forward_indices(planes_of(call), axes_of(call), rule) for rule in rules)
    Scatter.store_forward(self, call, maxima, np.where(indices % 2, first, last))


@fault("store_forward", base=Picking)
def nan_without_its_place(self, call, maxima, indices):
    """Gives NaN where there is one in the window, and the index of the greatest number."""
    numbers = forward_indices(planes_of(call), axes_of(call), ForwardRule.parse("no-nan"))
    Scatter.store_forward(self, call, maxima, numbers)


def test_a_rule_that_says_less_is_found_only_where_no_other_fits_and_one_that_nobody_knows_is_none() -> None:
    assert take_account(arbitrary(), "AdaptiveMaxPool2d", "float16", "int64").model == "any+any-nan"
    found = take_account(nan_without_its_place(), "AdaptiveMaxPool2d", "float16", "int64")
    assert (found.found("NaN"), found.model) == ("none of those known", "")
    (said,) = found.disagreements
    assert said.startswith("declared first, but no known rule fits the observed NaN (")


def test_the_command_prints_evidence_and_a_declaration() -> None:
    pytest.importorskip("torch")
    asked = ["probe", "--operator", WINDOWED, "--dtype", "float16", "--dtype", "float32"]
    result = forked.run(Command("poolproof", asked, ROOT, dict(os.environ)))
    assert result.returncode == 0, result.stderr
    assert "native  (partial sums keep 11 bits" in result.stdout
    assert f"{WINDOWED}, channels_last: float32: acc32, float16: native" in result.stdout


# What is switched on in the emulator: a setting of its environment, a defect.

SETTINGS = [
    ("", ADAPTIVE, "bfloat16", "accumulation", "acc32"),
    ("DEFECTS=bfloat16_truncated", ADAPTIVE, "bfloat16", "rounding", "toward zero"),
    ("ACCUMULATION=native", ADAPTIVE, "bfloat16", "accumulation", "native"),
    ("NARROWING=away", ADAPTIVE, "bfloat16", "rounding", "half away from zero"),
    ("NARROWING=truncate", ADAPTIVE, "float16", "rounding", "toward zero"),
    ("NARROWING=up", ADAPTIVE, "bfloat16", "rounding", "up"),
    ("NARROWING=down", ADAPTIVE, "bfloat16", "rounding", "down"),
    ("SUBNORMALS=flush", ADAPTIVE, "float16", "subnormals", "flushed by the cast"),
    ("OVERFLOW=saturate", ADAPTIVE, "float16", "overflow", "saturates"),
    ("TIES=last", "AdaptiveMaxPool2d", "float16", "tie", "last"),
    ("NANS=first", "AdaptiveMaxPool2d", "float16", "NaN", "first NaN"),
]

DECLARED = ("", "ACCUMULATION=native")
"""Settings of which the backend itself knows."""


@pytest.mark.parametrize(("setting", "operator", "dtype", "trait", "found"), SETTINGS)
def test_what_is_switched_on_is_found(setting: str, operator: str, dtype: str, trait: str, found: str) -> None:
    name, _, value = setting.partition("=")
    asked = ["--backend", "emulator-a2", "--operator", operator, "--dtype", dtype, "--memory-format", "contiguous"]
    environment = os.environ | ({f"POOLPROOF_EMULATOR_{name}": value} if name else {})
    run = forked.run(Command("poolproof", ["probe", *asked], ROOT, environment))
    lines = {line.split("  ")[1].strip(): line for line in run.stdout.splitlines() if line.startswith("  ")}
    assert lines[trait].removeprefix(f"  {trait}").split("(")[0].strip() == found, run.stdout + run.stderr
    assert run.returncode == (0 if setting in DECLARED else 1)
    assert ("!" in run.stdout) == (setting not in DECLARED)
