"""PaddlePaddle on the CPU: pools with and without windows of one size, 2-D and 3-D, forward and backward.

Indices count cells of the plane, in int32. Its ceil_mode has no clamp: a last window may begin in the padding behind
the input, so that what is asked with ceil_mode would be windows that the family does not have.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import BackendUnavailable, Call
from poolproof.backends.frameworks.copying import CopyingBackend, Question
from poolproof.references.forward_rule import ForwardRule, Nans, Nothing
from poolproof.references.operators import Operator

os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import paddle
except ImportError as error:
    raise BackendUnavailable("PaddlePaddle is not installed: pip install 'poolproof[paddle]'") from error
paddle.disable_signal_handler()  # it allocates, and so waits for ever where a heap is corrupted: no crash, but a hang


class Paddle(CopyingBackend):
    survives_fork = True  # with one thread, as the variable above has it
    without = Abilities(dilation=False, ceil_mode=False)

    def unsupported(self, operator: Operator, dtype: str, index_dtype: str) -> str | None:
        if not operator.aten:
            return "Paddle has no such operator"
        if dtype not in ("float64", "float32") or index_dtype != "int32":
            return "Paddle has no kernel for these dtypes on the CPU"
        return None

    def forward(self, question: Question) -> tuple[NDArray, NDArray]:
        pool = _kernel(question, "max_pool{}d_with_index")
        out, indices = self.ask(pool, paddle.to_tensor(question.values), *_windows(question))
        return out.numpy(), indices.numpy()

    def backward(self, question: Question) -> NDArray:
        pool = _kernel(question, "max_pool{}d_with_index_grad")
        given = (question.values, question.indices, question.gradient)
        made = self.ask(pool, *map(paddle.to_tensor, given), *_windows(question))
        return made.numpy()

    def forward_rule(self, call: Call) -> ForwardRule:  # noqa: ARG002
        """A running maximum from the lowest number on, which NaN does not replace; no index until something does."""
        return ForwardRule(nans=Nans.IGNORED, nothing=Nothing.LOWEST)

    def environment(self) -> Mapping[str, str]:
        return {"paddle": paddle.__version__}


def _kernel(question: Question, name: str) -> Any:
    return getattr(paddle._C_ops, name.format(question.operator.spatial_rank))  # noqa: SLF001  # the public pools give no foreign indices


def _windows(question: Question) -> tuple[Any, ...]:
    """kernel_size, strides, paddings, global_pooling, adaptive, ceil_mode."""
    if question.output_size:
        zeros = [0] * question.operator.spatial_rank
        return list(question.output_size), [1] * len(zeros), zeros, False, True, False
    return list(question.kernel_size), list(question.stride), list(question.padding), False, False, False
