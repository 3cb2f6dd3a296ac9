"""The program for calls that torch makes: plain torch."""

from __future__ import annotations

from poolproof.backends.base import Call, Tensor
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.operands import Contents
from poolproof.suites.judging.standalone.spelling import comparison, numbers

DEVICES = {"torch-cpu": "cpu", "torch-cuda": "cuda", "torch-npu": "npu"}
"""Backends whose calls torch makes, and the device."""

_HEAD = '''"""{title}, made with torch alone."""

from itertools import product
from math import fsum, inf, nan, prod

import torch

torch.use_deterministic_algorithms({deterministic})

TENSORS = {{}}  # name: (storage, layout)


def tensor(name, shape, strides, offset, storage, dtype, values=()):
    """A view that holds the values in row-major order, in a storage of 0xFF bytes."""
    memory = torch.full((storage * dtype.itemsize,), 255, dtype=torch.uint8).view(dtype)
    if len(values):
        widest = torch.float64 if dtype.is_floating_point else torch.int64
        memory[places(shape, strides, offset)] = torch.tensor(values, dtype=widest).to(dtype)
    memory = memory.to("{device}")
    TENSORS[name] = memory, (shape, strides, offset)
    return memory.as_strided(shape, strides, offset)


def places(shape, strides, offset):
    """Where in the storage the elements lie, in row-major order."""
    place = torch.tensor(offset)
    for size, stride in zip(shape, strides):
        place = place.unsqueeze(-1) + torch.arange(size) * stride
    return place.flatten()


def report(name, owed):
    """Print which elements differ from what is owed, and how many bytes around them were written.

    Looks at the memory through a view of its own: a call may change the strides of the tensor it is given.
    """
    memory, layout = TENSORS[name]
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


def write(content: Contents, call: Call, backend: str) -> str:
    """The program that makes ``call``, which holds ``content``, on the device of ``backend``."""
    case = content.case
    head = _HEAD.format(
        title=f"{case.operator} ({case.dtype}) on {DEVICES[backend]}",
        deterministic=case.deterministic,
        device=DEVICES[backend],
    )
    tensors = (_tensor(name, call.tensors[name], name in case.api.inputs) for name in case.api.tensors)
    return head + "\n".join(tensors) + _call(case) + comparison(content)


def _tensor(name: str, tensor: Tensor, filled: bool) -> str:
    layout = f"{tensor.shape}, {tensor.strides}, {tensor.offset}"
    size = f"{tensor.storage_elements}, torch.{tensor.dtype.name}"
    if not filled:
        return f'{name} = tensor("{name}", {layout}, {size})'
    values = numbers(f"{name}_values", tensor.array)
    return f'{values}\n{name} = tensor("{name}", {layout}, {size}, {name}_values)'


def _call(case: Case) -> str:
    attributes = [value if isinstance(value, bool) else list(value) for value in case.api.passed(case.attributes)]
    if case.api.is_backward:
        arguments = ["grad_output", "self", *map(str, attributes), "indices", "grad_input=grad_input"]
        return f"\ntorch.ops.aten.{case.api.aten}.grad_input({', '.join(arguments)})\n"
    arguments = ["self", *map(str, attributes), "out=out", "indices=indices"]
    return f"\ntorch.ops.aten.{case.api.aten}.out({', '.join(arguments)})\n"
