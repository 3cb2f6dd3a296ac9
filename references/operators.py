"""The operator family as data: five backward operators and the forwards that produce their indices.

Names are the operator library's API names without the ``aclnn`` prefix. Sources: the API pages of the library
(one per operator, named like it) and torch's ``native_functions.yaml`` for the aten names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from poolproof.references.geometry import Axis, taps
from poolproof.references.indices import FLAT, MASK, Indices
from poolproof.references.text_enum import TextEnum
from poolproof.references.windows import KINDS, Adaptive, Attribute, Lengths, Windowed, Windows


class Direction(TextEnum):
    BACKWARD = "backward"
    FORWARD = "forward"


@dataclass(frozen=True)
class Operator:
    """One API of the family.

    ``spatial_rank`` counts D, H, W axes; tensors have shape ([N,] C, *spatial). ``windows`` is the kind of windows,
    whose attributes a call has. ``producer`` is the forward whose indices a backward consumes (None for a forward).
    ``aten`` is torch's name, None where torch has no such operator. ``indices`` is how indices are stored.
    ``takes_tags``: the API's page lists a format tag for channels last.
    """

    name: str
    spatial_rank: int
    windows: type[Windows]
    aten: str | None
    producer: str | None = None
    indices: Indices = FLAT
    takes_tags: bool = False

    def __post_init__(self) -> None:
        if self.windows not in KINDS:
            raise TypeError(f"{self.name} has {self.windows.__name__} windows, which are not among `Windows`")

    @cached_property
    def direction(self) -> Direction:
        return Direction.BACKWARD if self.is_backward else Direction.FORWARD

    @cached_property
    def is_backward(self) -> bool:
        return self.producer is not None

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes that the API takes, in its order."""
        return self.windows.attributes() if self.windows.backward_takes_attributes or not self.is_backward else ()

    def passed(self, windows: Windows) -> tuple[Lengths | bool, ...]:
        """List the values that the API is passed of a call's windows, one for each of `attributes`."""
        given = windows.passed()
        return tuple([getattr(given, attribute.name) for attribute in self.attributes])

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensor arguments that are read, in API order."""
        return ("grad_output", "self", "indices") if self.is_backward else ("self",)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Tensor arguments that are written, in API order."""
        return ("grad_input",) if self.is_backward else ("out", "indices")

    @property
    def pooled(self) -> str:
        """The data tensor with one value for each window."""
        return "grad_output" if self.is_backward else "out"

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return self.inputs + self.outputs

    @cached_property
    def strided(self) -> tuple[str, ...]:
        """The tensors that may be laid out in any way."""
        return tuple(name for name in self.tensors if name != "indices" or self.indices.has_layout)

    def tensor_shapes(self, shape: tuple[int, ...], axes: Sequence[Axis]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of ``tensors``, for ``shape`` of self and the windows along its axes."""
        leading, windows = shape[: -self.spatial_rank], tuple([axis.windows for axis in axes])
        pooled = {self.pooled: leading + windows, "indices": self.indices.tensor_shape(leading, windows, taps(axes))}
        return {tensor: pooled.get(tensor, shape) for tensor in self.tensors}


_FAMILY = (
    Operator("MaxPool3dWithArgmaxBackward", 3, Windowed, "max_pool3d_with_indices_backward", "MaxPool3dWithArgmax"),
    Operator(
        "MaxPool2dWithIndicesBackward",
        2,
        Windowed,
        "max_pool2d_with_indices_backward",
        "MaxPool2dWithIndices",
        takes_tags=True,
    ),
    Operator("MaxPool2dWithMaskBackward", 2, Windowed, None, "MaxPool2dWithMask", indices=MASK),
    Operator("AdaptiveMaxPool2dBackward", 2, Adaptive, "adaptive_max_pool2d_backward", "AdaptiveMaxPool2d"),
    Operator("AdaptiveMaxPool3dBackward", 3, Adaptive, "adaptive_max_pool3d_backward", "AdaptiveMaxPool3d"),
    Operator("MaxPool3dWithArgmax", 3, Windowed, "max_pool3d_with_indices", takes_tags=True),
    Operator("MaxPool2dWithIndices", 2, Windowed, "max_pool2d_with_indices", takes_tags=True),
    Operator("MaxPool2dWithMask", 2, Windowed, None, indices=MASK),
    Operator("AdaptiveMaxPool2d", 2, Adaptive, "adaptive_max_pool2d"),
    Operator("AdaptiveMaxPool3d", 3, Adaptive, "adaptive_max_pool3d"),
)

OPERATORS = {operator.name: operator for operator in _FAMILY}
if unknown := {operator.producer for operator in _FAMILY} - {None, *OPERATORS}:
    raise ValueError(f"no operator of the family is the producer {', '.join(map(str, unknown))}")
BACKWARDS = tuple(operator for operator in _FAMILY if operator.is_backward)
FORWARDS = tuple(operator for operator in _FAMILY if not operator.is_backward)


BY_NAME = {name: each for each in _FAMILY for name in (each.name, f"aclnn{each.name}", each.aten) if name}
"""The operators by each of their names: their own, with or without ``aclnn``, and aten's."""


def find_operator(name: str) -> Operator:
    """Find an operator by its own name, with or without ``aclnn``, or its aten name. KeyError if there is none."""
    if name not in BY_NAME:
        raise KeyError(f"unknown operator {name!r}; known are {', '.join(OPERATORS)}")
    return BY_NAME[name]
