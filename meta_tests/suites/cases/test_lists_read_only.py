"""Lists that are read and never written: dumps of msprobe, problems of benchdnn, node tests of ONNX."""

import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry
from poolproof.suites.cases.lists import READ_ONLY, ListError, NotExpressible, read_lists
from poolproof.suites.cases.operands import make_operands
from wrong_values import WRONG, places, put


def read_text(folder: Path, text: str, name: str = "list") -> list[Entry]:
    (folder / name).write_text(text)
    return read_lists([folder / name])


def case_of(entry: Entry) -> Case:
    assert entry.case is not None, entry.fault
    return entry.case


def said(entry: Entry) -> str:
    """What is wrong with a row, after its place."""
    assert entry.case is None
    return entry.fault.partition("): ")[2]


@pytest.mark.parametrize("name", READ_ONLY)
def test_nothing_is_written_in_them(name: str) -> None:
    case = Case.of("AdaptiveMaxPool2d", shape=(1, 4, 4), output_size=(2, 2))
    with pytest.raises(NotExpressible, match=f"poolproof reads lists of {name}, and writes none"):
        READ_ONLY[name].write(case, 1)


# msprobe


def tensor(*shape: int, low: Any = -2.5, high: Any = 3.0, dtype: str = "torch.float32") -> dict[str, Any]:
    return {"type": "torch.Tensor", "dtype": dtype, "shape": list(shape), "Max": high, "Min": low}


def number(value: Any) -> dict[str, Any]:
    return {"type": type(value).__name__, "value": value}


def call(*given: Any, **named: Any) -> dict[str, Any]:
    return {"input_args": list(given), "input_kwargs": named, "output": []}


POOL = call(tensor(2, 3, 6, 4), *map(number, (3, 2, 1, 1)), ceil_mode=number(True), return_indices=number(False))
GRADIENT = {"input": [tensor(2, 3, 4, 3, low=1.0, high=1.0)], "output": [tensor(2, 3, 6, 4)]}
CALLS = {
    "Functional.conv2d.0.forward": call(tensor(1, 1, 1, 1)),
    "Functional.max_pool2d.0.forward": POOL,
    "Module.pool.MaxPool2d.forward.0": call(tensor(2, 3, 6, 4)),
    "Torch.max_pool3d.0.forward": call(input=tensor(1, 2, 4, 4, dtype="torch.float16"), kernel_size=[number(2)] * 3),
    "Functional.adaptive_max_pool2d.7.forward": call(tensor(3, 5, 4), [number(2), None]),
    "Functional.max_pool2d.0.backward": GRADIENT,
}


def read_dump(folder: Path, calls: Mapping[str, Any]) -> list[Entry]:
    return read_text(folder, json.dumps({"level": "mix", "dump_data_dir": None, "data": calls}, indent=1), "dump.json")


def test_the_max_pools_of_a_training_are_cases(tmp_path: Path) -> None:
    pool, cube, adaptive, backward = entries = read_dump(tmp_path, CALLS)
    assert [(entry.row, entry.name) for entry in entries] == [
        (place, name) for place, name in enumerate(CALLS, 1) if "max_pool" in name
    ]
    windows = {"kernel_size": (3,), "stride": (2,), "padding": (1,), "dilation": (1,), "ceil_mode": True}
    data = {"shape": (2, 3, 6, 4), "values": "between(-2.5,3)"}
    for entry, expected in (
        (pool, Case.of("MaxPool2dWithIndices", **windows, **data)),
        (cube, Case.of("MaxPool3dWithArgmax", shape=(1, 2, 4, 4), dtype="float16", kernel_size=(2, 2, 2))),
        (adaptive, Case.of("AdaptiveMaxPool2d", shape=(3, 5, 4), output_size=(2, 4))),
        (backward, Case.of("MaxPool2dWithIndicesBackward", gradient="filled(1)", **windows, **data)),
    ):
        case = case_of(entry)
        record = json.loads(expected.to_json()) | {"values": "between(-2.5,3)", "seed": case.seed}
        assert json.loads(case.to_json()) == record


@pytest.mark.parametrize(
    ("calls", "reason"),
    [
        (
            {"Functional.fractional_max_pool2d.0.forward": POOL},
            "Functional.fractional_max_pool2d.0: poolproof tests",
        ),
        ({"Functional.max_pool2d.0.backward": GRADIENT}, "its forward, which has the attributes, is not in the dump"),
        ({"T.max_pool2d.0.forward": call(tensor(1, 2, 2, dtype="torch.int8"))}, "dtype: poolproof tests the dtypes"),
        ({"T.max_pool2d.0.forward": call(tensor(1, 2, 2, low=None), number(2))}, "self: None is no number"),
        ({"T.max_pool2d.0.forward": call(number(2))}, "input_args: a pool takes a tensor first"),
        ({"Aten.max_pool2d_with_indices_backward.0.forward": POOL}, "input_args: a pool takes a tensor first"),
        ({"T.max_pool2d.0.forward": call(tensor(1, 2, 2), *[number(1)] * 7)}, "1: no argument of max_pool2d"),
        ({"T.max_pool2d.0.forward": call(tensor(1, 2, 2))}, "no legal call"),
        ({"T.max_pool2d.0.forward": {"input_args": 5, "input_kwargs": {}}}, "input_args, input_kwargs: a call has"),
        ({**CALLS, "Functional.max_pool2d.0.backward": {"input": []}}, "input: a backward has the gradient there"),
    ],
)
def test_a_call_that_is_no_case_says_why(tmp_path: Path, calls: Mapping[str, Any], reason: str) -> None:
    assert said(read_dump(tmp_path, {**calls, "T.add.0.forward": call()})[-1]).startswith(reason)


def test_a_dump_of_modules_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ListError, match=r"has no row \(msprobe, a dump\.json of level L1 or mix\)"):
        read_dump(tmp_path, {"Module.pool.MaxPool2d.forward.0": POOL})


def test_whatever_stands_in_a_dump_each_pool_is_a_case_or_has_a_fault() -> None:
    lots, cases = random.Random(0), 0
    for _ in range(400):
        calls = put(CALLS, lots.choice([place for place in places(CALLS) if place]), lots.choice(WRONG))
        for name in CALLS:
            if "max_pool" in name:
                entry = READ_ONLY["msprobe"].entry((name, calls), "list", 1)
                assert entry.case or entry.fault.startswith("row 1 of list (")
                cases += entry.case is not None
    assert 400 < cases < 1600


# benchdnn

BACKWARD = """\
# comments  --dir=FWD_D
--reset --alg=max --dt=f32, \\
   f16 --dir=BWD_D # and here
--batch=shapes
--tag=axb
"""


def test_problems_are_read_under_each_choice_of_knobs(tmp_path: Path) -> None:
    (tmp_path / "shapes").write_text('mb1ic2_ih5oh3kh3sh2ph1_iw6ow3kw2sw2_n"named"\n--dt=bf16\n')
    named, half, last = map(case_of, read_text(tmp_path, BACKWARD + "ic3id4kd2\n"))
    windows = {"kernel_size": (3, 2), "stride": (2, 2), "padding": (1, 0), "dilation": (1, 1)}
    data = {"gradient": "whole(-2048,2048)", "values": "whole(-2048,2048)", "seed": named.seed}
    assert named == Case.of("MaxPool2dWithIndicesBackward", shape=(1, 2, 5, 6), **windows, **data)
    assert (half.dtype, half.values) == ("float16", "whole(-32,32)")
    assert (last.operator, last.shape, last.dtype) == ("MaxPool3dWithArgmaxBackward", (2, 3, 4, 4, 4), "bfloat16")
    assert dict(last.layouts) == dict.fromkeys(last.api.strided, "channels_last")


@pytest.mark.parametrize(
    ("problem", "windows"),
    [
        ("mb1ic2ih7kh3sh2", {"padding": (0, 0), "ceil_mode": False}),
        ("mb1ic2ih8oh4kh3sh2ph0", {"padding": (0, 0), "ceil_mode": True}),
        ("mb1ic2ih8oh8kh3", {"padding": (1, 1), "ceil_mode": False}),
        ("mb1ic2ih9oh5kh3dh1", {"padding": (0, 0), "dilation": (2, 2)}),
    ],
)
def test_what_a_problem_leaves_out_follows(tmp_path: Path, problem: str, windows: Mapping[str, Any]) -> None:
    (entry,) = read_text(tmp_path, f"{problem}\n")
    case = case_of(entry)
    assert {name: getattr(case.attributes, name) for name in windows} == windows


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ic2ih8oh8kh2ph0", "padding: poolproof tests symmetric padding, not [0, 0] before and [1, 1] after"),
        ("ic2ih8oh12kh3ph3", "no legal call: padding [3, 3] exceeds half"),
        ("ic2_kh3", "problem: it has no length"),
        ("ic2ih8", "ih, kh: a problem needs both"),
        ("ic2iw8kw2", "shape: poolproof tests 2-D and 3-D pools, not 1-D ones"),
        ("--dt=u8 ic2ih8kh2", "dt: poolproof tests the dtypes"),
        ("--dt=f16:f32 ic2ih8kh2", "dt: poolproof tests pools of one dtype"),
        ("--alg=avg_np ic2ih8kh2", "alg: poolproof tests max pooling, not avg_np"),
        ("--tag=aBcd16b ic2ih8kh2", "tag: aBcd16b is none of"),
        ("--attr-post-ops=add:f32 ic2ih8kh2", "attr: poolproof tests pools without attributes"),
    ],
)
def test_a_problem_that_is_no_case_says_why(tmp_path: Path, text: str, reason: str) -> None:
    assert said(read_text(tmp_path, text)[0]).startswith(reason)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("--batch=nowhere", "no such file beside it"),
        ("--batch=list", "no such file beside it"),
        ("--match=conv ic2ih8kh2", "has no row"),
        ("--batch=shapes", "ic16ih10oc32oh8kh3 is no problem of the pool driver"),
        ("--dir=FWD_D ic16ih10oc32oh8kh3", "none of the formats"),
    ],
)
def test_a_file_of_benchdnn_without_a_pool_is_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "shapes").write_text("ic16ih10oc32oh8kh3")
    with pytest.raises(ListError, match=message):
        read_text(tmp_path, text)


# ONNX


def save_model(
    folder: Path,
    shape: tuple[Any, ...],
    dtype: Any = np.float32,
    data: bool = True,
    outputs: int = 2,
    **attributes: Any,
) -> Path:
    onnx = pytest.importorskip("onnx")
    (folder / "test_data_set_0").mkdir(parents=True)
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    names = ["y", "i"][:outputs]
    node = onnx.helper.make_node("MaxPool", ["x"], names, **{"kernel_shape": [2] * (len(shape) - 2)} | attributes)
    results = [onnx.helper.make_tensor_value_info(name, kind, None) for name in names]
    graph = onnx.helper.make_graph([node], "pool", [onnx.helper.make_tensor_value_info("x", kind, shape)], results)
    (folder / "model.onnx").write_bytes(onnx.helper.make_model(graph).SerializeToString())
    if data:
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        proto = onnx.numpy_helper.from_array(values)
        (folder / "test_data_set_0" / "input_0.pb").write_bytes(proto.SerializeToString())
    return folder


def test_node_tests_are_cases_with_their_data(tmp_path: Path) -> None:
    save_model(tmp_path / "node" / "test_b", (1, 2, 4, 3), strides=[2, 1], ceil_mode=1, pads=[1, 0, 1, 0])
    save_model(tmp_path / "node" / "test_a", (1, 1, 2, 2, 2), np.float16, data=False)
    drawn, given = read_lists([tmp_path / "node"])
    assert (drawn.name, case_of(drawn).operator, case_of(drawn).dtype) == ("test_a", "MaxPool3dWithArgmax", "float16")
    case = case_of(given)
    windows = {"kernel_size": (2, 2), "stride": (2, 1), "padding": (1, 0), "dilation": (1, 1), "ceil_mode": True}
    assert {name: getattr(case.attributes, name) for name in windows} == windows
    assert np.array_equal(make_operands(case).values.ravel(), np.arange(24.0))
    assert read_lists([tmp_path / "node" / "test_b" / "model.onnx"])[0].case == case


@pytest.mark.parametrize(
    ("shape", "attributes", "reason"),
    [
        ((1, 1, 4, 4), {"pads": [0, 0, 1, 1]}, "padding: poolproof tests symmetric padding, not [0, 0] before"),
        (
            (1, 1, 5, 5),
            {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
            "padding: poolproof tests symmetric",
        ),
        ((1, 1, 5, 5), {"auto_pad": "SAME_LOWER"}, "padding: poolproof tests symmetric padding, not [1, 1] before"),
        ((1, 1, 5, 5), {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 3]}, ""),
        ((1, 1, 5, 5), {"auto_pad": "VALID"}, ""),
        ((1, 1, 4), {}, "shape: poolproof tests 2-D and 3-D pools, not 1-D ones"),
        ((1, 1, 4, 4), {"dtype": np.uint8}, "dtype: poolproof tests the dtypes"),
        ((1, 1, 4, 4), {"storage_order": 1}, "storage_order: poolproof tests indices that count along rows"),
        ((1, 1, 4, 4), {"storage_order": 1, "outputs": 1}, ""),
        (("n", 1, 4, 4), {"data": False}, "shape: the model leaves it open"),
    ],
)
def test_a_node_that_is_no_case_says_why(tmp_path: Path, shape: Any, attributes: dict[str, Any], reason: str) -> None:
    (entry,) = read_lists([save_model(tmp_path / "test", shape, **attributes)])
    assert said(entry).startswith(reason) if reason else entry.case


def test_what_is_no_node_test_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx")
    with pytest.raises(ListError, match="has no row"):
        read_lists([tmp_path])
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(ListError, match="it and its data are no ONNX"):
        read_lists([tmp_path])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ListError, match=r"is ONNX: to read it, pip install 'poolproof\[onnx\]'"):
        read_lists([tmp_path])
