"""What a user of torch_npu writes, run in a process of its own: prints one object of JSON, found out on the device.

``pools`` compares results with those of torch on the CPU; ``codes`` reads calls and tells the status of each.
"""

import json
import re
import sys
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import torch
import torch_npu
from torch.nn import functional

PLANE, VOLUME = (2, 3, 8, 9), (2, 3, 6, 7, 5)
POOLS: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "max_pool2d": (PLANE, (3, 2, 1)),
    "max_pool3d": (VOLUME, (3, 2, 1)),
    "adaptive_max_pool2d": (PLANE, ((3, 4),)),
    "adaptive_max_pool3d": (VOLUME, ((3, 2, 4),)),
}


def compared() -> Iterator[dict[str, Any]]:
    """Every pool in the dtypes given, forward and backward. Gradients are small integers, so their sums are exact."""
    generator = torch.Generator().manual_seed(0)
    for name, (shape, windows) in POOLS.items():
        for dtype in [getattr(torch, each) for each in sys.argv[2:]]:
            values = torch.randperm(torch.Size(shape).numel(), generator=generator).reshape(shape).to(dtype)
            results: dict[str, list[torch.Tensor]] = {}
            gradient: Any = None
            for device in ("cpu", "npu"):
                leaf = values.clone().to(device).requires_grad_()
                out, indices = getattr(functional, name)(leaf, *windows, return_indices=True)
                if gradient is None:
                    gradient = torch.randint(-4, 5, out.shape, generator=generator).to(dtype)
                out.backward(gradient.to(device))
                results[device] = [each.detach().cpu() for each in (out, leaf.grad, indices)]
            *same, has_indices = map(torch.equal, results["cpu"], [*results["npu"][:2], results["npu"][2].long()])
            kind = results["npu"][2].dtype
            yield {"pool": name, "indices": str(kind)[6:], "same": all(same) and (has_indices or kind == torch.int8)}


def surroundings() -> dict[str, Any]:
    """What is called beside the pools: copies, casts, zeros, queries, gates of versions."""
    zeros, strided = torch.zeros(3, 4, device="npu"), torch.arange(12.0).reshape(4, 3)
    zeros.t().copy_(strided.npu())
    integers = torch.arange(12).reshape(2, 6)
    narrow = [integers.to(each).npu() for each in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64)]
    for each in narrow:
        each[0].copy_(each[1])
    casts = torch.tensor([-2.5, 0.0, 65519.0, 65520.0, 1e-8, 6e-8, 1.0009765625, float("inf"), float("nan")])
    event = torch.npu.Event()
    event.record()
    event.synchronize()
    return {
        "copy": torch.equal(zeros.cpu(), strided.t()),
        "narrow": all(torch.equal(each.cpu().long(), integers[[1, 1]]) for each in narrow),
        "spread": torch.equal(torch.zeros(2, 3).npu().copy_(torch.ones(3).npu()).cpu(), torch.ones(2, 3)),
        "casts": [str(casts.npu().to(half).cpu()) == str(casts.to(half)) for half in (torch.half, torch.bfloat16)],
        "bool": casts[:2].npu().bool().cpu().tolist(),
        "queries": [event.query(), torch.npu.current_stream().query()],
        "gates": [torch_npu._C._is_gte_cann_version(each, "CANN") for each in ("8.5.0", "9.0.0", "9.1.0")],
    }


def made(argument: Any) -> Any:
    if isinstance(argument, dict):
        return torch.ones(argument["shape"], dtype=getattr(torch, argument["dtype"])).npu()
    return argument


def code(function: str, arguments: list[Any], named: dict[str, Any]) -> int | str:
    """The status that reaches the user: 0, a number, or the beginning of another message."""
    call = attrgetter(function)(torch.ops.aten)
    try:
        call(*map(made, arguments), **{name: made(argument) for name, argument in named.items()})
        torch.npu.synchronize()
    except RuntimeError as error:
        numbers = re.findall(r"error code is (\d+)", str(error))
        return int(numbers[0]) if numbers else str(error)[:300]
    return 0


if __name__ == "__main__":
    found: Any = {"pools": [*compared()], **surroundings()} if sys.argv[1] == "pools" else None
    sys.stdout.write(json.dumps(found or [code(*call) for call in json.load(sys.stdin)]) + "\n")
