"""Lines that are no case, no low-level call and no way through the phases."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from bad_inputs import HONEST, Ending, Given, small_session

_WINDOWED = {
    "operator": "MaxPool2dWithIndicesBackward",
    "shape": [1, 1, 4, 4],
    "dtype": "float16",
    "index_dtype": "int64",
    "kernel_size": [2, 2],
    "stride": [2],
    "padding": [0],
    "dilation": [1],
    "ceil_mode": False,
    "gradient": "integers",
    "indices": "forward",
    "scale": 0,
    "layouts": {"grad_output": "sliced"},
    "deterministic": False,
    "seed": 3,
}
_ADAPTIVE = {"operator": "AdaptiveMaxPool3d", "shape": [1, 1, 2, 2, 2], "output_size": [1, 1, 1], "values": "ties"}
_TENSOR = {"shape": [1, 1, 2, 2], "dtype": "FLOAT", "format": "NCHW", "strides": [4, 4, 2, 1], "offset": 0}
_CALL = {
    "api": "aclnnMaxPool2dWithIndicesBackward",
    "tensors": dict.fromkeys(("gradOutput", "self", "indices", "gradInput"), _TENSOR),
    "lists": {name: [2, 2] for name in ("kernelSize", "stride", "padding", "dilation")},
    "ceilMode": False,
    "null_outputs": {"workspaceSize": False, "executor": False},
}
_WAY = {"way": "null_workspace", "case": _WINDOWED}

GOOD = (_WINDOWED, _ADAPTIVE, _CALL, _WAY)

_DEEP = 20_000

LISTED: Mapping[str, str] = {
    "nothing": "",
    "blanks": "  \t ",
    "a word": "MaxPool2dWithIndicesBackward",
    "a number": "17",
    "null": "null",
    "a list": "[]",
    "a list of cases": json.dumps([_WINDOWED]),
    "two objects": json.dumps(_WINDOWED) * 2,
    "an empty object": "{}",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "single quotes": str(_WINDOWED),
    "a trailing comma": '{"operator":"MaxPool2dWithIndicesBackward",}',
    "a comment": '{} // "shape"',
    "a byte order mark": "\ufeff" + json.dumps(_WINDOWED),
    "a byte that is no text": "\udcff" + json.dumps(_WINDOWED),
    "a lone surrogate": json.dumps({**_WINDOWED, "operator": "\ud800"}),
    "a lone surrogate as a field": json.dumps({**_WINDOWED, "\udfff": 1}),
    "escape sequences": json.dumps({**_WINDOWED, "operator": "\x1b[2J\x07"}),
    "a line of a CI": json.dumps({**_WINDOWED, "operator": "\n::error::all is lost"}),
    "a null character": json.dumps({**_WINDOWED, "operator": "\0"}),
    "markup": json.dumps({**_WINDOWED, "operator": "[bold]</b><script>"}),
    "lists nested deeply": "[" * _DEEP + "]" * _DEEP,
    "objects nested deeply": '{"way":' * _DEEP + "1" + "}" * _DEEP,
    **{
        f"{what} as {field}": json.dumps({**_WINDOWED, field: "HERE"}).replace('"HERE"', value)
        for what, field, value in (
            ("lists nested deeply", "shape", "[" * _DEEP + "]" * _DEEP),
            ("a number of many digits", "seed", "9" * 5000),
            ("lengths of many digits", "shape", f"[1,4,{'9' * 5000}]"),
            ("NaN", "seed", "NaN"),
        )
    },
    "a window of no cell": json.dumps({**_WINDOWED, "kernel_size": [9, 9], "dilation": [9]}),
    "a shape of many axes": json.dumps({**_WINDOWED, "shape": [1] * 20_000}),
    "attributes of the other kind": json.dumps({**_WINDOWED, "output_size": [1, 1]}),
    "the attributes of a low-level call": json.dumps({**_WINDOWED, "kernelSize": [2, 2]}),
    "a call and a case": json.dumps({**_CALL, **_WINDOWED}),
    "a call and a way": json.dumps({**_CALL, **_WAY}),
    "literals that overflow": json.dumps({**_WINDOWED, "literals": {"grad_output": [1e300] * 4}}),
    "literals that are too few": json.dumps({**_WINDOWED, "literals": {"grad_output": [1.0]}}),
    "indices outside the plane": json.dumps({**_WINDOWED, "literals": {"indices": [16, 0, 0, 0]}}),
    "a tag of one tensor": json.dumps({**_WINDOWED, "layouts": {"grad_output": "nhwc"}}),
    "strides of another rank": json.dumps(
        {**_CALL, "tensors": {**_CALL["tensors"], "self": {**_TENSOR, "strides": [1]}}}
    ),
    "a call for a backend without a contract": json.dumps(_CALL),
    **{
        f"a tensor of {size} cells": json.dumps({**_WINDOWED, "layouts": {}, "shape": shape})
        for size, shape in {
            "10**9 by 10**9": [1, 1, 10**9, 10**9],
            "2**62": [1, 1, 1, 2**62],
            "2**64": [1, 1, 1, 2**64],
            "10**30": [1, 1, 10**30, 1],
        }.items()
    },
    "more windows than numbers": json.dumps({**_ADAPTIVE, "output_size": [10**30, 1, 1]}),
}
"""Lines by what is wrong with them."""


TOO_LARGE: Mapping[str, str] = {
    "more windows than memory": json.dumps({**_ADAPTIVE, "output_size": [10**6, 10**6, 10**6]}),
    "10**11 cells": json.dumps({**_WINDOWED, "layouts": {}, "shape": [10**3, 10**2, 10**3, 10**3]}),
    "2**44 cells": json.dumps({**_WINDOWED, "layouts": {}, "shape": [2**20, 2**20, 4, 4]}),
    "a kernel beyond memory": json.dumps({**_WINDOWED, "shape": [1, 1, 10**7, 10**7], "kernel_size": [10**7, 1]}),
    "10**14 cells": json.dumps({**_WINDOWED, "layouts": {}, "shape": [1, 1, 10**7, 10**7]}),
}
"""Cases that are legal, and that no machine of today can judge."""


def listed() -> Iterator[Given]:
    for number, (what, line) in enumerate(TOO_LARGE.items()):
        given = _given(f"line: {what}", line, number)
        yield replace(given, ending=Ending.INCOMPLETE, names=("beyond the memory budget",))
    for number, (what, line) in enumerate(LISTED.items()):
        yield _given(f"line: {what}", line, number)


def _given(name: str, line: str, number: int) -> Given:
    """Every fourth to a session, the others to ``replay``, which is sooner done."""
    if number % 4:
        return Given(name, "poolproof", ("replay", "--backend", HONEST, "--", line), about="poolproof replay case")
    return Given(name, "pytest", small_session(f"--case={line}"), about="pytest --case")
