"""torch_npu's own wheel takes the emulated NPU for a card; skipped where it is not installed."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from finding_programs import EndedProcess, Program, programs
from places import SUPPORT
from poolproof.references.contract.call import ContractCall, TensorArgument
from poolproof.references.contract.expectation import expectations
from poolproof.references.products import PRODUCTS

WHEEL = find_spec("torch_npu")
pytestmark = pytest.mark.skipif(WHEEL is None, reason="torch_npu is not installed")

SCRIPT = """
environment=$("$PYTHON" -c 'from poolproof.suites.cli import main; main()' emulator env --product "$1") || exit
eval "$environment"
shift
exec "$PYTHON" "$@"
"""


def found(product: str, *words: str, calls: object = None, program: str = "npu_program.py", **settings: str) -> Any:
    """Run the program on the NPU that the command makes."""
    done = run_on(product, str(SUPPORT / program), *words, calls=calls, **settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def run_on(product: str, *words: str, calls: object = None, **settings: str) -> EndedProcess:
    assert WHEEL and WHEEL.origin
    variables = {**os.environ, "PYTHONPATH": str(Path(WHEEL.origin).parents[1]), "PYTHON": sys.executable, **settings}
    command, given = ["bash", "-c", SCRIPT, "bash", product, *words], json.dumps(calls)
    return subprocess.run(command, input=given, env=variables, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("product", ["A2", "A3", "950"])
@pytest.mark.parametrize("program", programs("torch_npu"))
def test_the_program_still_shows_it(product: str, program: Program) -> None:
    ended = run_on(product, str(program.path))
    assert program.still_shows(ended), (ended.returncode, ended.stdout, ended.stderr)


INDICES = {"A2": ["int8", "int32", "int64", "int32"], "950": ["int32", "int32", "int64", "int64"]}
"""Of the four pools of torch."""


@pytest.mark.parametrize("product", ["A2", "A3", "950", "A2 compatible"])
def test_pools_give_what_torch_gives_on_the_cpu(product: str) -> None:
    name, _, compatible = product.partition(" ")
    dtypes = ["float32"] if compatible else ["float32", "float16"]  # aclnnMaxPool2dWithIndicesBackward of A2
    told = found(name, "pools", *dtypes, TORCH_NPU_USE_COMPATIBLE_IMPL=str(len(compatible) and 1))
    indices = INDICES["950" if name == "950" else "A2"]
    indices = ["int32", *indices[1:]] if compatible else indices
    assert [row["indices"] for row in told["pools"]] == [each for each in indices for _ in dtypes]
    assert all(row["same"] for row in told["pools"])
    assert all([told["copy"], told["narrow"], told["spread"], *told["casts"], *told["queries"]])
    assert told["bool"] == [True, False]
    assert told["gates"] == [1, 1, 0]


TAGS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
VOLUME, PLANE = (1, 2, 6, 6, 6), (1, 2, 6, 6)
WINDOWS = {"kernelSize": (2,), "stride": (2,), "padding": (0,), "dilation": (1,)}


def backward(rank: int, index: str, grad: tuple[int, ...] = (), indices: tuple[int, ...] = ()) -> dict[str, Any]:
    """The tensors of a backward whose windows are two cells wide, in place of a shape the one given."""
    pooled = (1, 2, *(3,) * rank)
    own = (1, 2, *(6,) * rank)
    return {
        "gradOutput": (grad or pooled, "float32"), "self": (own, "float32"), "indices": (indices or pooled, index),
        "gradInput": (own, "float32"),
    }  # fmt: skip


def forward(rank: int, index: str, dtype: str = "float32") -> dict[str, Any]:
    pooled = (1, 2, *(3,) * rank)
    return {"self": ((1, 2, *(6,) * rank), dtype), "out": (pooled, dtype), "indices": (pooled, index)}


REFUSED = {
    "3-D forward, int8": ("MaxPool3dWithArgmax", forward(3, "int8")),
    "3-D forward, int64": ("MaxPool3dWithArgmax", forward(3, "int64")),
    "3-D forward, float64": ("MaxPool3dWithArgmax", forward(3, "int32", "float64")),
    "2-D forward, int32": ("MaxPool2dWithIndices", forward(2, "int32")),
    "3-D, int8": ("MaxPool3dWithArgmaxBackward", backward(3, "int8")),
    "3-D, int64": ("MaxPool3dWithArgmaxBackward", backward(3, "int64")),
    "3-D, shape of the indices": ("MaxPool3dWithArgmaxBackward", backward(3, "int32", indices=(1, 2, 3, 3, 2))),
    "3-D, pooled size": ("MaxPool3dWithArgmaxBackward", backward(3, "int32", (1, 2, 3, 3, 2), (1, 2, 3, 3, 2))),
    "2-D, rank": ("MaxPool2dWithIndicesBackward", backward(2, "int32", (2, 3, 3), (2, 3, 3))),
    "adaptive 3-D, int8": ("AdaptiveMaxPool3dBackward", backward(3, "int8")),
    "adaptive 3-D, int64": ("AdaptiveMaxPool3dBackward", backward(3, "int64")),
    "adaptive 2-D, int8": ("AdaptiveMaxPool2dBackward", backward(2, "int8")),
}
"""The aclnn function, and the tensors that it gets."""

ATEN = {
    "MaxPool3dWithArgmax": "max_pool3d_with_indices",
    "MaxPool2dWithIndices": "max_pool2d_with_indices",
    "AdaptiveMaxPool3d": "adaptive_max_pool3d",
    "AdaptiveMaxPool2d": "adaptive_max_pool2d",
}


def torch_call(api: str, tensors: dict[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
    """As torch makes it: its function, arguments and named ones."""
    function, is_adaptive = ATEN[api.removesuffix("Backward")], api.startswith("Adaptive")
    given = {name: {"shape": shape, "dtype": dtype} for name, (shape, dtype) in tensors.items()}
    rank = len(tensors["self"][0]) - 2
    lists = [] if is_adaptive else [[2] * rank, [2] * rank, [0] * rank, [1] * rank, False]
    if not api.endswith("Backward"):
        return f"{function}.out", [given["self"], *lists], {name: given[name] for name in ("out", "indices")}
    return f"{function}_backward", [given["gradOutput"], given["self"], *lists, given["indices"]], {}


def contract_call(api: str, tensors: dict[str, Any]) -> ContractCall:
    names = {"float32": "FLOAT", "float64": "DOUBLE"}
    given = {
        name: TensorArgument.contiguous(shape, names.get(dtype, dtype.upper()), TAGS[len(shape)])
        for name, (shape, dtype) in tensors.items()
    }
    rank, is_windowed = len(tensors["self"][0]) - 2, not api.startswith("Adaptive")
    lists = {name: value * rank for name, value in WINDOWS.items()} if is_windowed else {}
    return ContractCall(f"aclnn{api}", given, lists, False if is_windowed else None)


def test_the_status_that_reaches_the_user_is_that_of_the_contract() -> None:
    calls = [torch_call(*call) for call in REFUSED.values()]
    _, arguments, _ = torch_call(*REFUSED["3-D, int8"])
    shifted = {"grad_input": {"shape": VOLUME, "dtype": "float32"}}
    calls.append(("max_pool3d_with_indices_backward.grad_input", arguments, shifted))
    for product, refused in {"A2": 13, "A3": 13, "950": 9}.items():
        expected = []
        for api, tensors in REFUSED.values():
            called = api if product == "950" else api.replace("2dWithIndices", "2dWithMask")
            expected.append(int(expectations(PRODUCTS[product], contract_call(called, tensors)).code.status))
        told = found(product, "codes", calls=calls, ASCEND_LAUNCH_BLOCKING="1")
        expected.append(161001)  # torch_npu 2.13 leaves `indices` out of this call
        names = (*REFUSED, "3-D, grad_input=")
        assert dict(zip(names, told, strict=True)) == dict(zip(names, expected, strict=True))
        assert sum(map(bool, told)) == refused


def case(operator: str, shape: tuple[int, ...], index_dtype: str, **more: Any) -> dict[str, Any]:
    windows = (
        {"output_size": (2, 2, 2)[: 2 + ("3d" in operator)]}
        if operator.startswith("Adaptive")
        else {"kernel_size": [2]}
    )
    return {"operator": operator, "shape": shape, "index_dtype": index_dtype, **windows, **more}


def judged(product: str, *cases: dict[str, Any], **settings: str) -> list[dict[str, Any]]:
    told = found(product, calls=cases, program="npu_judge.py", **settings)
    assert told["loaded"] == 1, "torch is loaded once, whatever becomes of its calls"
    return list(told["rows"])


@pytest.mark.parametrize("product", ["A2", "950"])
def test_the_backend_judges_every_operator_and_accuses_nobody(product: str) -> None:
    flat, of_2d = ("int32", "MaxPool2dWithIndices") if product == "950" else ("int8", "MaxPool2dWithMask")
    ways = {of_2d: (PLANE, flat), "MaxPool3dWithArgmax": (VOLUME, "int32"), "AdaptiveMaxPool3d": (VOLUME, "int32")}
    ways |= {"AdaptiveMaxPool2d": (PLANE, "int64")}
    cases = [case(f"{name}{end}", *way) for name, way in ways.items() for end in ("", "Backward")]
    dilated = case(of_2d, PLANE, flat, dilation=[2])
    wide = [case(name, *ways[name], dtype="float64") for name in ("AdaptiveMaxPool3d", "MaxPool3dWithArgmax")]
    half = case("AdaptiveMaxPool3dBackward", VOLUME, "int32", dtype="float16")
    *rows, refused, on_cpu, unlisted, narrow = judged(product, *cases, dilated, *wide, half)
    assert [(row["verdict"], row["product"]) for row in (*rows, narrow)] == [("conforms", product)] * 9
    assert refused["verdict"] == ("conforms" if product == "950" else "refused as documented")
    assert on_cpu["reason"] == "torch_npu computes adaptive_max_pool3d of float64 on the CPU"
    assert [row["verdict"] for row in (on_cpu, unlisted)] == ["not supported"] * 2
    assert narrow["model"] == ("native" if product == "950" else "acc32"), "as the aclnn function adds"


def test_a_refusal_a_wrong_result_and_a_crash_load_torch_once() -> None:
    wrong = case("AdaptiveMaxPool2dBackward", PLANE, "int64")
    dies = case("AdaptiveMaxPool2dBackward", (1, 65, 6, 6), "int64")
    refused = case("AdaptiveMaxPool2dBackward", (2, 6, 6), "int64")
    defects = "unbatched_refused,plane_offset_dropped,crash_on_uneven_cores"
    rows = judged("950", refused, wrong, dies, refused, POOLPROOF_EMULATOR_DEFECTS=defects)
    assert [row["verdict"] for row in rows] == ["violates", "violates", "crashed", "violates"]
    assert "a legal call was refused: E161002: aclnnAdaptiveMaxPool2dBackward" in rows[0]["reason"]
    assert "interval" in rows[1]["checks_violated"]


@pytest.mark.parametrize("defect", ["extents_exchanged", "gradient_of_first_plane"])
def test_a_seeded_defect_is_found_on_a2(defect: str) -> None:
    wrong = case("AdaptiveMaxPool2dBackward", (1, 4, 6, 8), "int64")
    (row,) = judged("A2", wrong, POOLPROOF_EMULATOR_DEFECTS=defect)
    assert "interval" in row["checks_violated"]
