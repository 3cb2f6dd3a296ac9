"""The words of a low-level call: statuses, dtypes, format tags, and what each API takes.

Names are those of the operator library. Nothing here says what is legal; that is in the clause tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from poolproof.references.indices import MASK
from poolproof.references.operators import OPERATORS


class ReturnCode(IntEnum):
    """The return codes that this family of APIs uses (the library's page of aclnn return codes)."""

    SUCCESS = 0
    NULL_POINTER = 161001
    INVALID_PARAMETER = 161002
    INTERNAL_NULL = 561103


DTYPES = (
    *("UNDEFINED", "FLOAT", "FLOAT16", "INT8", "INT32", "UINT8", "INT16", "UINT16", "UINT32", "INT64", "UINT64"),
    *("DOUBLE", "BOOL", "STRING", "COMPLEX64", "COMPLEX128", "BF16", "INT4", "UINT1", "COMPLEX32", "HIFLOAT8"),
    *("FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0", "FLOAT6_E3M2", "FLOAT6_E2M3", "FLOAT4_E2M1", "FLOAT4_E1M2"),
)
"""Members of aclDataType, without their prefix."""

TAG_RANKS: dict[str, int | None] = {
    "ND": None,
    "NC": None,
    "NCL": 3,
    "NCHW": 4,
    "NHWC": 4,
    "HWCN": 4,
    "NCDHW": 5,
    "NDHWC": 5,
}
"""Plain format tags and the rank that each one names; None fits every rank (observed)."""

PRIVATE_TAGS = (
    *("NC1HWC0", "FRACTAL_Z", "NC1HWC0_C04", "FRACTAL_NZ", "NDC1HWC0", "FRACTAL_Z_3D"),
    *("FRACTAL_NZ_C0_16", "FRACTAL_NZ_C0_32", "FRACTAL_NZ_C0_2", "FRACTAL_NZ_C0_4", "FRACTAL_NZ_C0_8"),
)
"""Format tags of the device's own layouts, which no API of the family takes."""

TAGS = (*TAG_RANKS, *PRIVATE_TAGS)

OUT_POINTERS = ("workspaceSize", "executor")
"""What phase one writes through; either pointer may be null in a call that should be refused."""

_WINDOW = ("kernelSize", "stride", "padding", "dilation")


@dataclass(frozen=True)
class Signature:
    """What phase one of an API takes besides the out-pointers, in API order."""

    tensors: tuple[str, ...]
    lists: tuple[str, ...]
    spatial_rank: int

    @property
    def is_windowed(self) -> bool:
        """Whether windows come from attributes (and ceilMode exists), not from shapes alone."""
        return self.lists == _WINDOW

    @property
    def is_backward(self) -> bool:
        return "gradOutput" in self.tensors

    @property
    def pooled(self) -> str:
        """The tensor with one value per window."""
        return self.tensors[0] if self.is_backward else self.tensors[1]

    @property
    def indices(self) -> str:
        return "indicesOut" if "indicesOut" in self.tensors else "indices"

    @property
    def data(self) -> tuple[str, ...]:
        """Every tensor that holds values, not indices."""
        return tuple(name for name in self.tensors if name != self.indices)


_BACKWARD = ("gradOutput", "self", "indices", "gradInput")
_FORWARD = ("self", "out", "indices")
_ADAPTIVE_FORWARD = ("self", "outputOut", "indicesOut")

SIGNATURES = {
    "aclnnMaxPool3dWithArgmaxBackward": Signature(_BACKWARD, _WINDOW, 3),
    "aclnnMaxPool2dWithIndicesBackward": Signature(_BACKWARD, _WINDOW, 2),
    "aclnnMaxPool2dWithMaskBackward": Signature(_BACKWARD, _WINDOW, 2),
    "aclnnAdaptiveMaxPool2dBackward": Signature(_BACKWARD, (), 2),
    "aclnnAdaptiveMaxPool3dBackward": Signature(_BACKWARD, (), 3),
    "aclnnMaxPool3dWithArgmax": Signature(_FORWARD, _WINDOW, 3),
    "aclnnMaxPool2dWithIndices": Signature(_FORWARD, _WINDOW, 2),
    "aclnnMaxPool2dWithMask": Signature(_FORWARD, _WINDOW, 2),
    "aclnnAdaptiveMaxPool2d": Signature(_ADAPTIVE_FORWARD, ("outputSize",), 2),
    "aclnnAdaptiveMaxPool3d": Signature(_ADAPTIVE_FORWARD, ("outputSize",), 3),
}

MASK_APIS = tuple(f"aclnn{name}" for name, operator in OPERATORS.items() if operator.indices is MASK)
"""The APIs whose indices are an int8 mask."""
