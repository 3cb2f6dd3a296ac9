"""The vocabulary of low-level calls: statuses, dtypes, format tags, and the arguments of each API.

Names are those of the operator library. The clause tables say what is legal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cached_property

from poolproof.references.indices import MASK
from poolproof.references.operators import OPERATORS, Operator


class ReturnCode(IntEnum):
    """The return codes of this family of APIs (the library's page of aclnn return codes)."""

    SUCCESS = 0
    NULL_POINTER = 161001
    INVALID_PARAMETER = 161002
    INTERNAL_NULL = 561103


DTYPES = {
    "UNDEFINED": -1, "FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4, "INT16": 6, "UINT16": 7, "UINT32": 8,
    "INT64": 9, "UINT64": 10, "DOUBLE": 11, "BOOL": 12, "STRING": 13, "COMPLEX64": 16, "COMPLEX128": 17, "BF16": 27,
    "INT4": 29, "UINT1": 30, "COMPLEX32": 33, "HIFLOAT8": 34, "FLOAT8_E5M2": 35, "FLOAT8_E4M3FN": 36, "FLOAT8_E8M0": 37,
    "FLOAT6_E3M2": 38, "FLOAT6_E2M3": 39, "FLOAT4_E2M1": 40, "FLOAT4_E1M2": 41,
}  # fmt: skip
"""Members of aclDataType without their prefix -> number (the runtime's ``acl_base_rt.h``)."""

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
"""Plain format tag -> the only rank that it fits; None for every rank (observed)."""

PLAIN_TAGS = {3: "NCL", 4: "NCHW", 5: "NCDHW"}
"""Rank -> the tag of the plain order of axes; other ranks have the tag ND."""

PRIVATE_TAGS = (
    *("NC1HWC0", "FRACTAL_Z", "NC1HWC0_C04", "FRACTAL_NZ", "NDC1HWC0", "FRACTAL_Z_3D"),
    *("FRACTAL_NZ_C0_16", "FRACTAL_NZ_C0_32", "FRACTAL_NZ_C0_2", "FRACTAL_NZ_C0_4", "FRACTAL_NZ_C0_8"),
)
"""Format tags of the device's own layouts, which no API of the family takes."""

PRIVATE_TAG_RANKS = {"FRACTAL_Z": 4, "FRACTAL_Z_3D": 4, "NC1HWC0": 5, "NC1HWC0_C04": 5, "NDC1HWC0": 6}
"""Private tag -> the only rank that it fits; others fit every rank (observed; ops-math transdata.cpp:48)."""

TAGS = (*TAG_RANKS, *PRIVATE_TAGS)

OUT_POINTERS = ("workspaceSize", "executor")
"""The pointers that phase one writes to. Either may be null in a call that should be refused."""


class Role(Enum):
    INPUT = "input"
    LIST = "list"
    FLAG = "flag"
    OUTPUT = "output"


@dataclass(frozen=True)
class Argument:
    """One argument of phase one: the library's name, poolproof's name, and its role."""

    name: str
    ours: str
    role: Role


@dataclass(frozen=True)
class Signature:
    """The arguments of an API's phase one, without the out-pointers, in API order."""

    operator: Operator
    arguments: tuple[Argument, ...]

    def of_role(self, *roles: Role) -> tuple[str, ...]:
        return tuple(argument.name for argument in self.arguments if argument.role in roles)

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return self.of_role(Role.INPUT, Role.OUTPUT)

    @cached_property
    def lists(self) -> tuple[str, ...]:
        return self.of_role(Role.LIST)

    @cached_property
    def flags(self) -> tuple[str, ...]:
        return self.of_role(Role.FLAG)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        return self.of_role(Role.OUTPUT)

    @property
    def spatial_rank(self) -> int:
        return self.operator.spatial_rank

    @cached_property
    def names(self) -> dict[str, str]:
        """Each argument's name in poolproof -> its name in the library."""
        return {argument.ours: argument.name for argument in self.arguments}

    @property
    def pooled(self) -> str:
        """The tensor with one value per window."""
        return self.names[self.operator.pooled]

    @property
    def indices(self) -> str:
        return self.names["indices"]

    @property
    def data(self) -> tuple[str, ...]:
        """The tensors that hold values, not indices."""
        return tuple(name for name in self.tensors if name != self.indices)


_OWN_NAMES = {
    name: {"out": "outputOut", "indices": "indicesOut"} for name in ("AdaptiveMaxPool2d", "AdaptiveMaxPool3d")
}
"""Names of arguments that differ from those of the other APIs."""


def _signature(operator: Operator) -> Signature:
    """List inputs, attributes and outputs, in the same order for all APIs."""
    roles = [
        *((name, Role.INPUT) for name in operator.inputs),
        *((attribute.name, Role.FLAG if attribute.is_flag else Role.LIST) for attribute in operator.attributes),
        *((name, Role.OUTPUT) for name in operator.outputs),
    ]
    names = _OWN_NAMES.get(operator.name, {})
    return Signature(operator, tuple(Argument(names.get(ours) or _joined(ours), ours, role) for ours, role in roles))


def _joined(name: str) -> str:
    """Spell ``kernel_size`` as the library does: ``kernelSize``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


SIGNATURES = {f"aclnn{name}": _signature(operator) for name, operator in OPERATORS.items()}

MASK_APIS = tuple(api for api, signature in SIGNATURES.items() if signature.operator.indices is MASK)
"""The APIs with an int8 mask as indices."""
