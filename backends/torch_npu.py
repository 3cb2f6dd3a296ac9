"""Torch on an Ascend NPU: `TorchEager` through torch_npu. The contract of aclnn says what may be refused."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from poolproof.backends.base import BackendUnavailable, Call, Outcome, Status
from poolproof.backends.torch_eager import TorchEager
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.contract.statuses import LOSES_THE_CONTEXT, PROVES_NOTHING
from poolproof.references.operators import Operator
from poolproof.references.products import PRODUCTS, Product, product_of
from poolproof.references.torch_ways import WAYS

if TYPE_CHECKING:
    import torch

_CODE = re.compile(r"error code is (\d+)")
_REASON = re.compile(r"^E[0-9A-Z]\d{4,5}: .+", re.MULTILINE)
_DEAD_QUEUE = "The process exits for this inner error"
"""torch_npu's message for an error in its queue. From then on it silently computes nothing."""


class TorchNpu(TorchEager):
    """Raises BackendUnavailable if torch_npu or the device is missing, or the chip belongs to no known product."""

    product: Product
    is_compatible = False
    _is_usable, _saturates = True, False

    def open(self) -> None:
        super().open()
        chip = self.module.get_device_name()
        product = product_of(chip)
        if product is None:
            raise BackendUnavailable(f"chip {chip!r} belongs to no known product ({', '.join(PRODUCTS)})")
        self.product, self.is_compatible = product, self.module.are_compatible_impl_enabled()
        self._saturates = not self.module.utils.is_support_inf_nan()

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        return WAYS[operator.name].unsupported(self.product, self.is_compatible, dtype, index_dtype)

    def accumulation(self, call: Call) -> AccumulationModel:
        return replace(self.product.accumulation(call.operator.name, call.dtype), saturates=self._saturates)

    def route(self, call: Call) -> str:  # noqa: ARG002
        return ""

    def is_deterministic(self, call: Call) -> bool:
        """Declare what the pages of aclnn promise."""
        return call.deterministic or not call.operator.is_backward

    def environment(self) -> Mapping[str, str]:
        own = {"product": self.product.name, "soc": self.module.get_device_name()}
        own |= {"saturation": "saturate" if self._saturates else "inf and nan", "compatible": str(self.is_compatible)}
        return {**super().environment(), "torch_npu": sys.modules["torch_npu"].__version__, **own}

    def is_usable(self) -> bool:
        return self._is_usable

    def compute(self, call: Call, views: Mapping[str, torch.Tensor]) -> None:
        operator, way, given = call.operator, WAYS[call.operator.name], dict(views)
        if (
            not operator.indices.has_layout
        ):  # aclnn reads from the start of a mask's storage, and ignores the offset of the view
            given["indices"] = views["indices"].clone()
        if way.takes_out:
            self.call_aten(way.aten, call, given)
        else:
            function, inputs = getattr(self.torch.ops.aten, way.aten), [given[name] for name in operator.inputs]
            views["grad_input"].copy_(function(*inputs[:2], *operator.passed(call.attributes), inputs[2]))
        if "indices" in operator.outputs and given["indices"] is not views["indices"]:
            views["indices"].copy_(given["indices"])

    def refused(self, error: Exception) -> Outcome:
        """Read code and reason from aclnn's part of the text."""
        text = str(error)
        codes, reasons = _CODE.findall(text), _REASON.findall(text)
        code = int(codes[0]) if codes else None
        self._is_usable &= _DEAD_QUEUE not in text and code not in LOSES_THE_CONTEXT
        status = Status.UNAVAILABLE if code in PROVES_NOTHING else Status.REFUSED
        return Outcome(status, code, reasons[0] if reasons else super().refused(error).message)


def on_device(device: str) -> TorchEager:
    """Create the backend of one of torch's devices: ``cpu``, ``cuda`` or ``npu``."""
    return (TorchNpu if device == "npu" else TorchEager)(device)
