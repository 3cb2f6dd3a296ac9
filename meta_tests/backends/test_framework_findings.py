"""What FINDINGS.md says about frameworks: each plain program still shows it, where that framework is installed.

Inductor's programs, which compile for half a minute, are those of `inductor_findings.py`.
"""

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
    "numpy 2.4.6": "numpy",
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


@pytest.mark.parametrize("program", ALL)
def test_the_plain_program_still_shows_it(program: Program) -> None:
    ended = run_afresh(program)
    assert program.still_shows(ended), (ended.returncode, ended.stdout, ended.stderr)
