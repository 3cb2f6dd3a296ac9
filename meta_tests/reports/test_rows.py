"""Facts of rows: features, factors, sentences and the environment, each by one value."""

import platform

import pytest

from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.environment import host_environment
from poolproof.reports.rows.factors import BY_NAME, SHARED
from poolproof.reports.rows.failures import message
from poolproof.reports.rows.features import features_of
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.pairs import row_of


@pytest.mark.parametrize(("overlapping", "features"), [(True, {True}), (False, {False}), (None, set())])
def test_overlap_is_a_feature_of_a_row_that_knows_it(overlapping: bool | None, features: set[bool]) -> None:
    row = row_of(Case.smallest(OPERATORS["MaxPool2dWithIndices"])) | {"overlapping": overlapping}
    assert {value for name, value in features_of(row).items() if name == "overlapping windows"} == features


def test_elements_of_an_output_share_no_memory() -> None:
    shared = {name for name, factor in BY_NAME.items() if SHARED in factor.classes}
    assert shared == {f"layout of {tensor}" for tensor in ("grad_output", "self", "indices")}


def test_the_sentence_of_a_smaller_case_is_that_of_its_line() -> None:
    row = {"case": "{}", "reason": "large", "shrunk": None, "shrunk_reason": None}
    assert message(row) == "large"
    assert message(row | {"shrunk": "{}", "shrunk_reason": "small"}) == "small"


def test_the_environment_names_its_python() -> None:
    assert host_environment()["python"] == platform.python_version()
