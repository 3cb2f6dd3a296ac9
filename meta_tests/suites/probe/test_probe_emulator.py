"""The probe names what is switched on in the emulator: a setting of its environment, a trait, and what is found."""

from __future__ import annotations

import os

import pytest

import forked
from forked import Command
from places import ROOT

BACKWARD, FORWARD = "AdaptiveMaxPool2dBackward", "AdaptiveMaxPool2d"

SETTINGS = [
    ({}, BACKWARD, "bfloat16", "accumulation", "acc32"),
    ({"POOLPROOF_EMULATOR_DEFECTS": "half_accumulator"}, BACKWARD, "bfloat16", "accumulation", "native"),
    ({"POOLPROOF_EMULATOR_DEFECTS": "bfloat16_truncated"}, BACKWARD, "bfloat16", "rounding", "toward zero"),
    ({"POOLPROOF_EMULATOR_DEFECTS": "nan_dropped"}, BACKWARD, "float16", "NaN", "zero"),
    ({"POOLPROOF_EMULATOR_DEFECTS": "last_maximum_wins"}, FORWARD, "float16", "tie", "last"),
    ({"POOLPROOF_EMULATOR_ACCUMULATION": "native"}, BACKWARD, "bfloat16", "accumulation", "native"),
    ({"POOLPROOF_EMULATOR_NARROWING": "away"}, BACKWARD, "bfloat16", "rounding", "half away from zero"),
    ({"POOLPROOF_EMULATOR_NARROWING": "truncate"}, BACKWARD, "float16", "rounding", "toward zero"),
    ({"POOLPROOF_EMULATOR_NARROWING": "up"}, BACKWARD, "bfloat16", "rounding", "up"),
    ({"POOLPROOF_EMULATOR_NARROWING": "down"}, BACKWARD, "bfloat16", "rounding", "down"),
    ({"POOLPROOF_EMULATOR_SUBNORMALS": "flush"}, BACKWARD, "float16", "subnormals", "flushed by the cast"),
    ({"POOLPROOF_EMULATOR_OVERFLOW": "saturate"}, BACKWARD, "float16", "overflow", "saturates"),
    ({"POOLPROOF_EMULATOR_TIES": "last"}, FORWARD, "float16", "tie", "last"),
    ({"POOLPROOF_EMULATOR_NANS": "first"}, FORWARD, "float16", "NaN", "first NaN"),
]

DECLARED = ({}, {"POOLPROOF_EMULATOR_ACCUMULATION": "native"})
"""Settings of which the backend itself knows."""


@pytest.mark.parametrize(("setting", "operator", "dtype", "trait", "found"), SETTINGS)
def test_what_is_switched_on_is_found(
    setting: dict[str, str], operator: str, dtype: str, trait: str, found: str
) -> None:
    asked = ["--backend", "emulator-a2", "--operator", operator, "--dtype", dtype, "--memory-format", "contiguous"]
    run = forked.run(Command("poolproof", ["probe", *asked], ROOT, os.environ | setting))
    lines = {line.split("  ")[1].strip(): line for line in run.stdout.splitlines() if line.startswith("  ")}
    assert lines[trait].removeprefix(f"  {trait}").split("(")[0].strip() == found, run.stdout + run.stderr
    assert run.returncode == (0 if setting in DECLARED else 1)
    assert ("!" in run.stdout) == (setting not in DECLARED)
