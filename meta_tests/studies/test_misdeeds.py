"""Harm that a library does to its process reaches no verdict but its own: `studies/misdeeds.py` with a few misdeeds."""

import pytest
from click.testing import CliRunner

import misdeeds


@pytest.mark.parametrize(
    ("name", "cases", "said"),
    [
        ("all_descriptors_closed", "5", "3 of 3 others as honest"),
        pytest.param("pickle_on_all_descriptors", "5", "3 of 3 others as honest", marks=pytest.mark.thorough),
        # One such death may pass for one from outside, or come after the last case.
        pytest.param("sigterm_to_the_parent", "24", "16 of 16 others as honest", marks=pytest.mark.thorough),
        pytest.param("numpy_monkeypatched", "5", "3 of 3 others as honest", marks=pytest.mark.thorough),
        # Wrong results do not conform, whatever is patched.
        ("lying", "5", "2 of 2 that do it accused, 3 of 3 others as honest"),
    ],
)
def test_harm_stays_with_who_does_it(name: str, cases: str, said: str) -> None:
    ended = CliRunner().invoke(misdeeds.main, ["--only", name, "--cases", cases], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert said in ended.output
