"""Node tests of ONNX: a model of one MaxPool with its data sets, ``model.onnx`` and ``test_data_set_0/input_0.pb``.

A folder is one of them, or holds several at any depth. Small inputs become the data of the case as they are, others
are drawn. Source: ONNX's page of MaxPool, for ``auto_pad`` and for defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from poolproof.suites.cases.case import Case
from poolproof.suites.cases.entry import Entry, OwnStandard
from poolproof.suites.cases.lists.base import ListFormat
from poolproof.suites.cases.lists.fields import (
    ListError,
    RowError,
    dtype_named,
    legal_case,
    pool_named,
    same_padding,
    seed_of,
)

MODEL = "model.onnx"
_MOST_LITERALS = 1 << 12
"""Elements of an input that a line of JSON still holds."""


class OnnxModels(ListFormat):
    name = "onnx"
    looks = f"{MODEL}, or a folder of such"

    def recognises(self, text: str) -> bool:  # noqa: ARG002
        return False  # it is no text

    def entries(self, text: str, label: str) -> Iterator[Entry]:
        return self.entries_at(Path(label), text)

    def entries_at(self, path: Path, text: str) -> Iterator[Entry]:  # noqa: ARG002
        """Read the max pools below a folder, or of one model; `ListError` if the package onnx is missing."""
        try:
            import onnx
        except ImportError as error:
            raise ListError(f"case list {path} is ONNX: to read it, pip install 'poolproof[onnx]'") from error
        tests = sorted(path.rglob(MODEL)) if path.is_dir() else [path]
        for number, place in enumerate(tests, 1):
            given, *_ = *sorted(place.parent.glob("test_data_set_*/input_0.pb")), None
            try:
                model = onnx.load(place, load_external_data=False)
                if not any(node.op_type == "MaxPool" for node in model.graph.node):
                    continue
                data = None if given is None else onnx.numpy_helper.to_array(onnx.load_tensor(given))
            except Exception as error:  # of types of protobuf's own
                raise ListError(f"case list {place}: it and its data are no ONNX: {error}") from error
            yield self.entry((place.parent.name, model.graph, data), path.name, number)

    def name_of(self, row: Any, number: int) -> str:  # noqa: ARG002
        return row[0]

    def read(self, row: Any, name: str) -> tuple[Case, OwnStandard]:
        from onnx.helper import get_attribute_value, tensor_dtype_to_np_dtype

        _, graph, data = row
        if (len(graph.node), len(graph.input)) != (1, 1):
            raise RowError(f"graph: a node test has one node and input, not {len(graph.node)} and {len(graph.input)}")
        given = {each.name: get_attribute_value(each) for each in graph.node[0].attribute}
        declared = graph.input[0].type.tensor_type
        shape = [length.dim_value for length in declared.shape.dim] if data is None else list(data.shape)
        if data is None and not all(length.HasField("dim_value") for length in declared.shape.dim):
            raise RowError("shape: the model leaves it open, and has no test_data_set")
        dtype = dtype_named("dtype", tensor_dtype_to_np_dtype(declared.elem_type) if data is None else data.dtype)
        api = pool_named(len(shape) - 2)
        if given.get("storage_order") and len(graph.node[0].output) > 1:
            raise RowError("storage_order: poolproof tests indices that count along rows, not columns")
        record: dict[str, Any] = {"operator": api.name, "shape": shape, "dtype": dtype}
        record |= _windows(given, shape[2:]) | {"seed": seed_of(name)}
        if data is not None and data.size <= _MOST_LITERALS:
            record["literals"] = {"self": data.ravel().astype(float).tolist()}
        return legal_case(record), OwnStandard()


def _windows(given: Mapping[str, Any], lengths: list[int]) -> dict[str, Any]:
    """Return the fields of a case for the attributes of a node, which give or imply its padding."""
    kernel, ones = list(given.get("kernel_shape", [])), [1] * len(lengths)
    stride, dilation = list(given.get("strides", ones)), list(given.get("dilations", ones))
    pads = list(given.get("pads", [0] * 2 * len(lengths)))
    if (rule := given.get("auto_pad", b"NOTSET").decode()) != "NOTSET":
        reach = [(size - 1) * step + 1 for size, step in zip(kernel, dilation, strict=False)]
        axes = zip(lengths, stride, reach, strict=False)
        ends = [max((-(-length // step) - 1) * step + size - length, 0) for length, step, size in axes]
        less, more = [end // 2 for end in ends], [end - end // 2 for end in ends]
        pads = {"SAME_UPPER": less + more, "SAME_LOWER": more + less}.get(rule, [0] * 2 * len(lengths))
    padding = same_padding(pads[: len(lengths)], pads[len(lengths) :])
    windows = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation}
    return windows | {"ceil_mode": bool(given.get("ceil_mode"))}
