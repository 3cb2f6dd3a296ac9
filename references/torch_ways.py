"""The aclnn function behind each torch operator on an NPU, by product, and the calls that torch_npu passes on to it.

Source: torch_npu 2.13.0 on the emulated NPU, and op-plugin's ``op_plugin/ops/opapi``. The contract of the function says
which of these calls it may refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poolproof.references.products import Product

IndexDtypes = Mapping[str, tuple[str, ...]]
"""Product -> dtypes of indices that torch_npu passes on; if there are none, it does not call the function."""

_NONE: tuple[str, ...] = ()
_BOTH = ("int32", "int64")


@dataclass(frozen=True)
class Way:
    """The way from torch to an aclnn function.

    Attributes:
        aten: Torch's operator.
        indices: Dtypes of indices that reach the function.
        compatible: The same under ``TORCH_NPU_USE_COMPATIBLE_IMPL=1``, if different.
        takes_out: The overload that writes into the caller's tensor is right. Otherwise calls use the one that returns.
        on_cpu: Dtypes that torch_npu computes on the CPU, with a warning.
    """

    aten: str
    indices: IndexDtypes
    compatible: IndexDtypes | None = None
    takes_out: bool = True
    on_cpu: tuple[str, ...] = ()

    def unsupported(self, product: Product, is_compatible: bool, dtype: str, index_dtype: str) -> str | None:
        """Return why calls in these dtypes do not reach the function on the product; None if they do."""
        by_product = self.compatible if is_compatible and self.compatible else self.indices
        taken = product.value_in(by_product) if product.has_value_in(by_product) else ()
        if not taken:
            return f"torch_npu passes no {self.aten} on to this function of aclnn on {product}"
        if dtype in self.on_cpu:
            return f"torch_npu computes {self.aten} of {dtype} on the CPU"
        return None if index_dtype in taken else f"torch_npu passes on {' and '.join(taken)} indices only"


_WITH_INDICES: tuple[IndexDtypes, IndexDtypes] = {"A2": _NONE, "950": _BOTH}, {"A2": _BOTH, "950": _BOTH}
_WITH_MASK: tuple[IndexDtypes, IndexDtypes] = {"A2": ("int8",), "950": _NONE}, {"A2": _NONE, "950": _NONE}
_INT32_BEFORE_950: IndexDtypes = {"A2": ("int32",), "950": _BOTH}
_INT64: IndexDtypes = {"A2": ("int64",), "950": ("int64",)}
_ANY: IndexDtypes = {"A2": _BOTH, "950": _BOTH}

WAYS: Mapping[str, Way] = {
    "MaxPool2dWithIndices": Way("max_pool2d_with_indices", *_WITH_INDICES),
    "MaxPool2dWithIndicesBackward": Way("max_pool2d_with_indices_backward", *_WITH_INDICES),
    "MaxPool2dWithMask": Way("max_pool2d_with_indices", *_WITH_MASK),
    "MaxPool2dWithMaskBackward": Way("max_pool2d_with_indices_backward", *_WITH_MASK),
    "MaxPool3dWithArgmax": Way("max_pool3d_with_indices", _INT32_BEFORE_950),
    # the overload with grad_input= leaves the indices out (FINDINGS.md)
    "MaxPool3dWithArgmaxBackward": Way("max_pool3d_with_indices_backward", _INT32_BEFORE_950, takes_out=False),
    "AdaptiveMaxPool2d": Way("adaptive_max_pool2d", _INT64),
    "AdaptiveMaxPool2dBackward": Way("adaptive_max_pool2d_backward", _ANY),
    "AdaptiveMaxPool3d": Way("adaptive_max_pool3d", _INT32_BEFORE_950, on_cpu=("float64",)),
    "AdaptiveMaxPool3dBackward": Way("adaptive_max_pool3d_backward", _INT32_BEFORE_950, on_cpu=("float64",)),
}
"""aclnn operator -> way from torch. A3 is like A2. On other products torch_npu calls older interfaces."""
