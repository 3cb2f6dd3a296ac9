"""Facts of rows: features, factors, sentences and the environment, each by one value."""

import json
import platform

import pytest

from poolproof.references.operators import OPERATORS
from poolproof.reports.rows.environment import host_environment
from poolproof.reports.rows.factors import BY_NAME, SHARED
from poolproof.reports.rows.failures import message
from poolproof.reports.rows.features import feature_table, features_of
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.pairs import row_of


@pytest.mark.parametrize(("overlapping", "features"), [(True, {True}), (False, {False}), (None, set())])
def test_overlap_is_a_feature_of_a_row_that_knows_it(overlapping: bool | None, features: set[bool]) -> None:
    row = row_of(Case.smallest(OPERATORS["MaxPool2dWithIndices"])) | {"overlapping": overlapping}
    assert {value for name, value in features_of(row).items() if name == "overlapping windows"} == features


def test_features_of_a_call() -> None:
    of_two = Case.of("MaxPool2dWithIndices", shape=(1, 2, 6, 7), kernel_size=(2, 3), padding=(1, 0), stride=(3, 1))
    windows = {"a 3-D operator": False, "padding": True, "padding along W": 0, "stride > kernel": True}
    sizes = {"bytes of out mod 64": 2 * 3 * 5 * 4 % 64, "bytes of an output mod 64": 2 * 3 * 5 * 4 % 64}
    assert (windows | sizes).items() <= features_of(row_of(of_two)).items()
    narrow = Case.of("MaxPool3dWithArgmax", shape=(1, 1, 2, 2, 2), kernel_size=(1,), padding=(0, 0, 1))
    assert {"a 3-D operator": True, "padding along W": 1}.items() <= features_of(row_of(narrow)).items()


def test_features_of_a_low_level_call() -> None:
    tensors = {"self": {"shape": [0, 3], "dtype": "float16", "format": "ND"}, "out": None}
    row = {"operator": "MaxPool2dWithIndices", "case": json.dumps({"tensors": tensors, "lists": {"stride": [4, 7]}})}
    named = {"a null self": False, "a null out": True, "rank of self": 2, "an empty self": True}
    named |= {"length of stride": 2, "value 1 of stride": 4, "value 2 of stride": 7}
    assert named.items() <= features_of(row).items()


def test_of_the_details_of_a_route_flags_alone_are_features() -> None:
    row = row_of(Case.smallest(OPERATORS["MaxPool2dWithIndices"]))
    table = feature_table([row | {"route": f"tiles; cores {cores}; atomic {cores % 2}"} for cores in (2, 3)])
    assert {name for name in table if name.startswith("route")} == {"route", "route's atomic"}


def test_elements_of_an_output_share_no_memory() -> None:
    shared = {name for name, factor in BY_NAME.items() if SHARED in factor.classes}
    assert shared == {f"layout of {tensor}" for tensor in ("grad_output", "self", "indices")}


def test_the_sentence_of_a_smaller_case_is_that_of_its_line() -> None:
    row = {"case": "{}", "reason": "large", "shrunk": None, "shrunk_reason": None}
    assert message(row) == "large"
    assert message(row | {"shrunk": "{}", "shrunk_reason": "small"}) == "small"


def test_the_environment_names_its_python() -> None:
    assert host_environment()["python"] == platform.python_version()
