"""The operator family as data: five backward operators and the forwards that produce their indices.

Names are the operator library's API names without the ``aclnn`` prefix. Sources: the library's API pages, named like
the operators, and torch's ``native_functions.yaml`` for the aten names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from poolproof.references.geometry import Axis, taps
from poolproof.references.indices import FLAT, MASK, Indices
from poolproof.references.nearest import unknown_name
from poolproof.references.text_enum import TextEnum
from poolproof.references.windows import KINDS, Adaptive, Attribute, Lengths, Windowed, Windows


class Direction(TextEnum):
    BACKWARD = "backward"
    FORWARD = "forward"


@dataclass(frozen=True)
class Operator:
    """One API of the family; its tensors have the shape ([N,] C, *spatial).

    Attributes:
        spatial_rank: Number of spatial axes, of D, H and W.
        windows: The kind of windows. A call has its attributes.
        aten: Torch's name; None if torch has no such operator.
        producer: The forward that produces a backward's indices; None for a forward.
        indices: How indices are stored.
        takes_tags: The API's page lists a format tag for channels last.
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
        """Return the values that a call passes to the API, one per item of `attributes`."""
        given = windows.passed()
        return tuple([getattr(given, attribute.name) for attribute in self.attributes])

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Tensor arguments that the operator reads, in API order."""
        return ("grad_output", "self", "indices") if self.is_backward else ("self",)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """Tensor arguments that the operator writes, in API order."""
        return ("grad_input",) if self.is_backward else ("out", "indices")

    @property
    def pooled(self) -> str:
        """The data tensor with one value per window."""
        return "grad_output" if self.is_backward else "out"

    @cached_property
    def tensors(self) -> tuple[str, ...]:
        return self.inputs + self.outputs

    @cached_property
    def strided(self) -> tuple[str, ...]:
        """The tensors that may have any layout."""
        return tuple(name for name in self.tensors if name != "indices" or self.indices.has_layout)

    def tensor_shapes(self, shape: tuple[int, ...], axes: Sequence[Axis]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of ``tensors``, given the ``shape`` of self and the windows along its axes."""
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
"""The operators by each of their names: aclnn's, with or without the prefix, and aten's."""


def find_operator(name: str) -> Operator:
    """Find an operator by its own name, with or without ``aclnn``, or its aten name; raise KeyError otherwise."""
    if name not in BY_NAME:
        raise KeyError(unknown_name("operator", name, OPERATORS))
    return BY_NAME[name]
