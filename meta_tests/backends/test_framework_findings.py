"""What FINDINGS.md says about frameworks: each plain program still shows it, where that framework is installed.

Inductor's programs, which compile for half a minute, are those of `inductor_findings.py`.
"""

import subprocess
from dataclasses import replace
from importlib.util import find_spec

import pytest

from finding_programs import Program, programs, run_afresh

MODULES = {
    "JAX": "jax",
    "MindSpore": "mindspore",
    "ONNX Runtime": "onnxruntime",
    "OpenVINO": "openvino",
    "PaddlePaddle": "paddle",
    "TensorFlow": "tensorflow",
    "mlx": "mlx",
    "onnx": "onnx",
    "tinygrad": "tinygrad",
}
"""Of each framework what has to be installed."""

EVERY = ("torch 2.13.0, CPU", "torch 2.13.0, compiled", "torch 2.13.0, tensors", *MODULES)

ALL = [
    pytest.param(
        program,
        id=f"{module}-{number}",
        marks=pytest.mark.skipif(find_spec(module) is None, reason=f"{framework} is not installed"),
    )
    for framework, module in MODULES.items()
    for number, program in enumerate(programs(framework), 1)
]


@pytest.mark.parametrize("heading", EVERY)
def test_every_finding_has_a_program_that_says_what_it_gives(heading: str) -> None:
    assert programs(heading)
    assert all(program.text and program.beginning for program in programs(heading))
    assert all(program.said or program.dies for program in programs(heading))


@pytest.mark.parametrize(
    ("text", "status", "output", "errors"),
    [
        ("print(index)  # got -2\n", 0, "-2\n", "a warning\n"),
        ("pool()  # got IndexError: -2\n", 1, "", "Traceback\nIndexError: -2\n"),
        ("print(index)  # got -2\npool()  # dies\n", -6, "-2\n", "corrupted\n"),
    ],
)
def test_what_a_mended_framework_gives_is_noticed(text: str, status: int, output: str, errors: str) -> None:
    program, ended = Program(text), subprocess.CompletedProcess([], status, output, errors)
    assert program.still_shows(ended)
    assert not program.still_shows(subprocess.CompletedProcess([], 0, "0\n", ""))
    assert not program.still_shows(subprocess.CompletedProcess([], status, output + "more\n", errors))
    for other in {0, 1, -6} - {status}:
        assert not program.still_shows(subprocess.CompletedProcess([], other, output, errors))
    assert not replace(program, text=program.text + "print(out)  # got nan").still_shows(ended)


@pytest.mark.parametrize("program", ALL)
def test_the_plain_program_still_shows_it(program: Program) -> None:
    ended = run_afresh(program)
    assert program.still_shows(ended), (ended.returncode, ended.stdout, ended.stderr)
