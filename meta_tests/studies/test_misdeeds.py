"""Harm that a library does to its process reaches no verdict but its own: `studies/misdeeds.py` with a few misdeeds."""

import pytest
from click.testing import CliRunner

import misdeeds


@pytest.mark.parametrize(
    ("name", "cases", "others"),
    [
        ("all_descriptors_closed", "5", 3),
        ("pickle_on_all_descriptors", "5", 3),
        # One such death may pass for one from outside, or come after the last case.
        ("sigterm_to_the_parent", "24", 16),
        ("numpy_monkeypatched", "5", 3),
    ],
)
def test_harm_stays_with_who_does_it(name: str, cases: str, others: int) -> None:
    ended = CliRunner().invoke(misdeeds.main, ["--only", name, "--cases", cases], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert f"{others} of {others} others as honest" in ended.output


def test_a_library_that_patches_the_judge_cannot_make_wrong_results_conform() -> None:
    ended = CliRunner().invoke(misdeeds.main, ["--only", "lying", "--cases", "5"], catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert "2 of 2 that do it accused, 3 of 3 others as honest" in ended.output
