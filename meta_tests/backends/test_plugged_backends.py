"""What a run says of backends that refuse, die, raise or are killed: verdict, exit status and sentence of each."""

import json
from functools import cache
from pathlib import Path

import pytest

from holding import holding, judged_by
from poolproof.backends.abilities import ALL, Abilities
from poolproof.references.forward_rule import FAMILY_RULE
from poolproof.reports.figures import tables
from poolproof.reports.rows.meetings import FactorCoverage
from poolproof.reports.rows.verdicts import Overall, Verdict
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.pairs import completing
from poolproof.suites.judging.case_question import AUXILIARY, CaseQuestion
from poolproof.suites.plan.aspects import CASE_ASPECTS
from poolproof.suites.plan.blocks import has_call
from poolproof.suites.plan.plans import PLANS, blocks, scope_of, subjects
from poolproof.suites.plan.selection import Selection
from poolproof.suites.run.runner import MOST_ERRORS
from scatter_backends import Able, PicksLastAndTakesNoIndices, Plain
from sessions import Ended, run_session
from shares import a_share

OPERATOR = "MaxPool2dWithIndicesBackward"
ASKED = ["--operator", OPERATOR, "--dtype", "float32", "--aspect", "values", "--no-shrink"]


def session(folder: Path, backend: str, cases: int = 12, *options: str) -> Ended:
    return run_session(folder, f"plugged_backends:{backend}", *options, "--cases", str(cases), asked=ASKED)


def verdicts(ended: Ended) -> set[str]:
    rows = tables.load(ended.folder, ["verdict", "aspect"])
    return set(rows["verdict"][rows["aspect"] != ""])


def test_who_refuses_everything_does_not_conform(tmp_path: Path) -> None:
    ended = session(tmp_path / "run", "refuses_everything")
    assert ended.status == Overall.INCOMPLETE
    assert verdicts(ended) == {Verdict.UNDOCUMENTED}
    said = (
        "INCOMPLETE (exit status 2): Refused without a known document that allows it: "
        f"24 of 24 planned cases; never run, only refused: every call of {OPERATOR} (float32)"
    )
    assert said in ended.output
    assert "refused without a known document that allows it: not today" in ended.output
    assert "24 refused undocumented" in ended.page


def test_who_refuses_all_padding_has_a_gap(tmp_path: Path) -> None:
    ended = session(tmp_path / "run", "refuses_padding", 40)
    assert ended.status == Overall.INCOMPLETE
    assert verdicts(ended) == {Verdict.CONFORMS, Verdict.UNDOCUMENTED}
    rows = tables.load(ended.folder, ["verdict", "padded"]).dropna()
    refused = rows[rows["padded"].astype(bool)]
    assert set(refused["verdict"]) == {Verdict.UNDOCUMENTED}
    said = f"allows it: {len(refused)} of 80 planned cases; never run, only refused: padding of {OPERATOR} (float32)"
    assert said in ended.output
    assert said in (ended.folder / "summary.md").read_text()


def test_who_refuses_padding_by_its_document_conforms_and_who_refuses_everything_does_not(tmp_path: Path) -> None:
    ended = session(tmp_path / "run", "refuses_padding_by_its_document", 40)
    assert ended.status == Overall.CONFORMS
    assert verdicts(ended) == {Verdict.CONFORMS, Verdict.REFUSED}
    ended = session(tmp_path / "all", "refuses_everything_by_its_document", 12)
    assert (ended.status, verdicts(ended)) == (Overall.INCOMPLETE, {Verdict.REFUSED})
    assert f"Never run, only refused: every call of {OPERATOR} (float32)" in ended.output


def test_an_adapter_that_does_nothing_but_raise_ends_its_session(tmp_path: Path) -> None:
    said = "first 10 cases ended in the same error: the adapter raised ValueError: no stream (dying_backends.py, line "
    ended = session(tmp_path / "run", "raises_always")
    assert (ended.status, verdicts(ended)) == (Overall.COULD_NOT_RUN, {Verdict.ADAPTER_ERROR})
    assert len(tables.load(ended.folder)) == MOST_ERRORS
    last = ended.output.strip().splitlines()[-1]
    assert said in last and last.endswith("fix the adapter and run again, or judge all cases with --keep-going")
    ended = session(tmp_path / "all", "raises_always", 12, "--keep-going")
    assert (ended.status, len(tables.load(ended.folder))) == (Overall.INCOMPLETE, 24)
    # one that is right elsewhere is mended by what its rows say
    assert session(tmp_path / "some", "raises_at_ceiling", 40).status == Overall.INCOMPLETE


IS_NONE = "{'status': 'ok', 'changed': ()} is no Outcome: Invalid enum value 'ok' - at `$.status`"
OF_A_STRANGER = "{'status': 'completed', 'results': {'gradient': [[1], 'float32']}} is no outcome of the call"


@pytest.mark.usefixtures("forked_sandboxes")
@pytest.mark.parametrize(
    ("backend", "verdict", "reason"),
    [
        ("status_is_text", Verdict.ADAPTER_ERROR, f"the adapter returned an invalid result: {IS_NONE}"),
        ("names_a_stranger", Verdict.ADAPTER_ERROR, f"the adapter returned an invalid result: {OF_A_STRANGER}"),
        ("loses_its_device", Verdict.VIOLATES, None),
    ],
)
def test_an_outcome_that_is_none_is_the_adapters_and_a_device_that_is_lost_no_refusal(
    tmp_path: Path, backend: str, verdict: str, reason: str | None
) -> None:
    case = Case.of(OPERATOR, shape=(1, 1, 4, 4), kernel_size=(2,))
    (row,) = judged_by(f"plugged_backends:{backend}", [CaseQuestion(case, holding("interval"))], tmp_path)
    assert row["verdict"] == verdict
    assert reason in (None, row["reason"])


# An implementation is asked for the calls that it says it has, and what it says is told.


LACKS = ("padding", "dilation", "ceil_mode", "unbatched", "empty_batch", "unequal_axes")


@cache
def drawn(abilities: Abilities) -> list[Case]:
    """What the smoke plan asks of an implementation with those abilities."""
    chosen = [subject for subject in subjects("able", Able(abilities)) if subject.dtype == "float16"]
    asked = blocks(chosen, CASE_ASPECTS.values(), PLANS["smoke"], 1)
    return [question.case for block in asked if not block.aspect.costly for question in block.questions()]


@pytest.mark.parametrize("lack", a_share(LACKS))
def test_no_call_is_asked_that_the_implementation_does_not_have(lack: str) -> None:
    abilities = Abilities(**{lack: False})
    assert [case for case in drawn(ALL) if abilities.lacking(case.api, case.shape, case.attributes)]
    assert not [case for case in drawn(abilities) if abilities.lacking(case.api, case.shape, case.attributes)]
    share = 0.6 if lack == "unequal_axes" else 0.9  # most stored pairs, and ends, differ by axis
    assert len(drawn(abilities)) > share * len(drawn(ALL))


def test_the_budget_goes_to_calls_that_reach_the_implementation() -> None:
    assert not [case for case in drawn(Abilities(layouts=())) if case.layouts]
    some = drawn(Abilities(layouts=("channels_last",)))
    assert {layout.partition("+")[0] for case in some for _, layout in case.layouts} == {"channels_last"}
    assert {case.indices for case in drawn(Abilities(indices=False)) if case.api.is_backward} == {"forward"}


def test_who_takes_no_indices_is_judged_by_those_of_its_own_rule() -> None:
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(3, 8, 8), kernel_size=(3,), stride=(2,), values="ties")
    backend, asked = PicksLastAndTakesNoIndices(), CaseQuestion(case, CASE_ASPECTS["values"])
    row = asked.judge(backend)
    assert (row["verdict"], row["reason"]) == (Verdict.CONFORMS, "")
    backend.declared = FAMILY_RULE
    assert asked.judge(backend)["verdict"] == Verdict.VIOLATES


def test_a_run_says_what_was_declared_and_draws_it_again(tmp_path: Path) -> None:
    asked = ["--operator", "MaxPool2dWithIndices", "--dtype", "float32", "--aspect", "values", "--cases", "12"]
    ended = run_session(tmp_path / "run", "scatter_backends:WithoutPadding", asked=asked)
    assert ended.status == Overall.CONFORMS
    assert not tables.load(ended.folder, ["padded"])["padded"].astype(bool).any()
    run = json.loads((ended.folder / "run.json").read_text())
    (environment,) = run["backends"].values()
    assert environment["abilities of MaxPool2dWithIndices"] == "no padding"
    selection = Selection.from_record(run["selection"])
    assert {subject.abilities for subject in selection.subjects()} == {Abilities(padding=False)}
    assert selection.to_record() == run["selection"]
    # A case that is named all the same is counted, with the reason; a contract leaves nothing to declare.
    line = '{"operator":"MaxPool2dWithIndices","shape":[1,4,4],"kernel_size":[2],"padding":[1]}'
    rows = tables.load(run_session(tmp_path / "named", "scatter_backends:WithoutPadding", "--case", line).folder)
    assert set(rows["verdict"] + rows["reason"]) == {Verdict.NOT_SUPPORTED + "the implementation has no padding"}
    ended = run_session(tmp_path / "a2", "scatter_backends:WithoutPaddingOnA2", "--cases", "1")
    assert "declares abilities, but it runs on A2, and that product's contract sets them" in ended.output
    assert ended.status == Overall.COULD_NOT_RUN


def test_what_an_implementation_has_not_is_asked_in_no_way(tmp_path: Path) -> None:
    asked = ["--operator", OPERATOR, "--operator", "MaxPool2dWithIndices", "--dtype", "float32", "--cases", "4"]
    ended = run_session(tmp_path / "run", "scatter_backends:Plain", "--probe", asked=asked)
    assert ended.status == Overall.CONFORMS, ended.output
    rows = tables.load(ended.folder, ["aspect", "verdict"])
    assert {"state", "round_trip", "phases"} <= {*rows["aspect"]}
    case = Case.of(OPERATOR, shape=(1, 1, 4, 4), kernel_size=(2,), layouts=(("self", "sliced"),))
    assert CaseQuestion(case, AUXILIARY).judge(Plain())["verdict"] == Verdict.NOT_SUPPORTED
    (subject, *_) = (each for each in subjects("plain", Plain()) if each.operator.name == OPERATOR)
    assert all(has_call(subject, case) for case in completing(FactorCoverage(scope_of(subject)), "float32"))


def test_abilities_are_read_as_they_are_written() -> None:
    for able in (ALL, *(Abilities(**{lack: False}) for lack in LACKS), Abilities(layouts=("nhwc",), indices=False)):
        assert Abilities.from_record(json.loads(json.dumps(able.to_record()))) == able
    with pytest.raises(ValueError, match="know no 'wings'"):
        Abilities.from_record({"wings": False})
