"""The study of recorded bits: the emulator gives those that are the only ones, and no others pass for them."""

import pytest
from click.testing import CliRunner

import kernel_bits


@pytest.mark.parametrize(
    ("product", "only", "wrong"), [("A2", "921 of 921", "6 of 6"), ("950", "485 of 485", "6 of 14")]
)
def test_the_emulator_gives_the_bits_that_kernels_give(product: str, only: str, wrong: str) -> None:
    ended = CliRunner().invoke(kernel_bits.main, ["--product", product, "--seeded", "--show", "0"])
    last = ended.output.splitlines()[-1]
    assert (ended.exit_code, only in last, last.endswith(wrong)) == (0, True, True), ended.output


def test_other_bits_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kernel_bits.FAULTS, "A2", "assign_not_accumulate")
    arguments = ["--product", "A2", "--dtype", "float16", "--seeded"]
    assert CliRunner().invoke(kernel_bits.main, arguments).exit_code == 1
