"""A failing call as a program for its vendor: plain torch and nothing of this project, the tensors spelled out.

The program makes the call on memory that holds 0xFF bytes, as the suite does, works out in a few loops what is owed,
and prints where the result differs. It knows nothing of accumulation models: a sum it lists may be rounded legally.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from poolproof.backends.base import Tensor
from poolproof.references.geometry import expand
from poolproof.suites.case import Case
from poolproof.suites.operands import POISONS, contents, place

MOST_VALUES = 20_000
"""Numbers that a program spells out at most."""

_DEVICES = {"torch-cpu": "cpu", "torch-cuda": "cuda", "torch-npu": "npu"}
"""Backends whose calls torch makes, and the device."""

_HEAD = '''"""{title}, made with torch alone."""

from itertools import product
from math import fsum, inf, nan, prod

import torch

torch.use_deterministic_algorithms({deterministic})


def tensor(shape, strides, offset, storage, dtype, values=()):
    """(storage, view): a storage of 0xFF bytes, and in it a view that holds the values in row-major order."""
    memory = torch.full((storage * dtype.itemsize,), 255, dtype=torch.uint8).view(dtype)
    if len(values):
        widest = torch.float64 if dtype.is_floating_point else torch.int64
        memory[places(shape, strides, offset)] = torch.tensor(values, dtype=widest).to(dtype)
    memory = memory.to("{device}")
    return memory, memory.as_strided(shape, strides, offset)


def places(shape, strides, offset):
    """Where in the storage the elements lie, in row-major order."""
    place = torch.tensor(offset)
    for size, stride in zip(shape, strides):
        place = place.unsqueeze(-1) + torch.arange(size) * stride
    return place.flatten()


def report(name, memory, layout, owed):
    """Print which elements differ from what is owed, and how many bytes around them were written.

    Looks at the memory through a view of its own: a call may change the strides of the tensor it is given.
    """
    memory = memory.cpu()
    view = memory.as_strided(*layout)
    got = view.double().flatten().tolist()
    owed = torch.tensor(owed, dtype=torch.float64).to(view.dtype).double().tolist()
    wrong = [i for i, (a, b) in enumerate(zip(got, owed)) if a != b and not (a != a and b != b)]
    print(f"{{name}}: {{len(wrong)}} of {{len(got)}} elements differ from what is owed")
    for i in wrong[:20]:
        element = [i // prod(view.shape[axis + 1 :]) % view.shape[axis] for axis in range(view.dim())]
        print(f"  {{name}}{{element}} is {{got[i]}}, owed {{owed[i]}}")
    around = torch.ones(memory.numel(), dtype=torch.bool)
    around[places(*layout)] = False
    written = int((memory[around].view(torch.uint8) != 255).sum())
    if written:
        print(f"  and {{written}} bytes of its storage that belong to no element were written")


'''

_BACKWARD = '''

def total(gradients):
    """The exact sum rounded to float64, or NaN where there is none."""
    try:
        return fsum(gradients)
    except (OverflowError, ValueError):
        return nan


sent = {{}}
for window, (cell, gradient) in enumerate(zip(indices.flatten().tolist(), grad_output.double().flatten().tolist())):
    sent.setdefault(window // {windows} * {cells} + cell, []).append(gradient)
owed = [total(sent.get(cell, ())) for cell in range(self.numel())]
report("grad_input", grad_input_memory, grad_input_layout, owed)
'''

_FORWARD = """

WINDOWS = {windows}  # per axis, per window: the coordinates it visits
SIZES = {sizes}

maxima, first = [], []
for plane in self.double().reshape(-1, {cells}).tolist():
    for window in product(*WINDOWS):
        best = None
        for coordinates in product(*window):
            cell = sum(at * prod(SIZES[axis + 1 :]) for axis, at in enumerate(coordinates))
            if best is None or plane[cell] > plane[best] or plane[cell] != plane[cell]:
                best = cell
        maxima.append(-inf if best is None else plane[best])
        first.append(-1 if best is None else best)
report("out", out_memory, out_layout, maxima)
report("indices", indices_memory, indices_layout, first)
"""


def program(case: Case, backend: str) -> str:
    """A Python program that makes the call of ``case``; empty for backends that are not torch, and for large calls."""
    values = case.planes * (case.plane_size + 2 * case.plane_windows)
    if backend not in _DEVICES or values > MOST_VALUES:
        return ""
    call = place(contents(case), POISONS[0])
    head = _HEAD.format(
        title=f"{case.operator} ({case.dtype}) on {_DEVICES[backend]}",
        deterministic=case.deterministic,
        device=_DEVICES[backend],
    )
    tensors = (_tensor(name, call.tensors[name], name in case.api.inputs) for name in case.api.tensors)
    return head + "\n".join(tensors) + _call(case) + _comparison(case)


def _tensor(name: str, tensor: Tensor, filled: bool) -> str:
    layout = f"{tensor.shape}, {tensor.strides}, {tensor.offset}"
    size = f"{tensor.storage_elements}, torch.{tensor.dtype.name}"
    if not filled:
        return f"{name}_layout = {layout}\n{name}_memory, {name} = tensor(*{name}_layout, {size})"
    kind = int if tensor.dtype.kind == "i" else float
    values = ", ".join(repr(kind(value)) for value in tensor.array.ravel())
    lines = textwrap.fill(values, 110, initial_indent="    ", subsequent_indent="    ")
    return f"_, {name} = tensor({layout}, {size}, [\n{lines}\n])"


def _call(case: Case) -> str:
    rank = case.api.spatial_rank
    attributes: Sequence[object]
    if case.api.pooling == "adaptive":
        attributes = [] if case.api.is_backward else [list(case.output_size)]
    else:
        padding, dilation = expand(case.padding, rank, (0,)), expand(case.dilation, rank, (1,))
        attributes = [*map(list, (case.kernel_size, case.stride, padding, dilation)), case.ceil_mode]
    if case.api.is_backward:
        arguments = ["grad_output", "self", *map(str, attributes), "indices", "grad_input=grad_input"]
        return f"\ntorch.ops.aten.{case.api.aten}.grad_input({', '.join(arguments)})\n"
    arguments = ["self", *map(str, attributes), "out=out", "indices=indices"]
    return f"\ntorch.ops.aten.{case.api.aten}.out({', '.join(arguments)})\n"


def _comparison(case: Case) -> str:
    if case.api.is_backward:
        return _BACKWARD.format(windows=case.plane_windows, cells=case.plane_size)
    windows = [
        [positions[valid].tolist() for positions, valid in zip(axis.positions, axis.valid, strict=True)]
        for axis in case.axes
    ]
    return _FORWARD.format(windows=windows, sizes=list(case.spatial_shape), cells=case.plane_size)
