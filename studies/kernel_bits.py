"""Recorded bits and tiling keys of the vendor's kernels, compared with the emulator, or with today's sources.

    python studies/kernel_bits.py [--product A2] [--dtype float32] [--seeded] [--show 5]
    python studies/kernel_bits.py --sources ops-nn [--product A2] [--dtype float32]

The recording (`meta_tests/golden`) is of ops-nn at e5c3fa93 on another model of Ascend C, one JSON object a line:
``product``; ``case``; ``route``, the tiling and its key; ``sha256`` of grad_input; ``verdict``; and ``bits_are``.
``bits_are`` is "only" if the kernel can give no other bits, "one of several" if atomic additions follow the order of
cores or threads, and "undefined" if the device chooses.

Exits with 1 if bits of "only" differ, except for kernels that violate: the emulator is right there, and ``--seeded``
gives it the fault of these kernels. Cases of a dtype that aclnn refuses in 2-D are computed as planes of depth 1 in
3-D. With ``--sources`` kernels are compiled from a checkout. Their keys are not compared, because the host framework
defines the encoding of a template's key.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import numpy as np

from poolproof.backends.base import SOURCES_VARIABLE, Backend, Call, Status, Tensor
from poolproof.backends.emulator.defects import VARIABLE
from poolproof.backends.registry import create, prepare
from poolproof.references.operators import OPERATORS
from poolproof.references.windows import Windowed
from poolproof.suites.cases.case import Case
from poolproof.suites.cases.memory import allocate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.judging.expected import unsupported

RECORDED = Path(__file__).parents[1] / "meta_tests" / "golden" / "kernel_bits.jsonl.gz"

KEYS = {"10000": "1", "10010": "1025", "10001": "2049"}
"""Tiling keys of the 950 that the recording spells differently from the emulator."""

NO_KEY = ("AdaptiveMaxPool3dGrad Simt", "nothing to compute")
"""Routes with meaningless keys: kernels that took uncast indices, which aclnn casts, and empty tensors."""

FAULTS = {"A2": "dilation_blind_overlap", "950": ""}
"""Seeded defects by which a product's emulator has the faults of the recorded kernels, value for value."""


KERNELS_950 = {
    "AdaptiveMaxPool2dBackward": "adaptive_max_pool3d_grad-950",
    "AdaptiveMaxPool3dBackward": "adaptive_max_pool3d_grad-950",
    "MaxPool2dWithIndicesBackward": "max_pool_grad_with_argmax_v3-950",
    "MaxPool3dWithArgmaxBackward": "max_pool3d_grad_with_argmax-950",
}


@click.command()
@click.option("--sources", type=click.Path(exists=True, file_okay=False, path_type=Path), help="A checkout of ops-nn.")
@click.option("--product", "products", multiple=True, default=("A2", "950"), show_default=True)
@click.option("--dtype", help="Only its rows.")
@click.option("--seeded", is_flag=True, help="Give the emulator the seeded defects that stand for the kernels' faults.")
@click.option("--show", default=5, show_default=True, help="Differences to print of each product and kind.")
def main(sources: Path | None, products: tuple[str, ...], dtype: str | None, seeded: bool, show: int) -> None:
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if dtype in (None, row["case"].get("dtype", "float32"))]
    if sources is not None:
        os.environ[SOURCES_VARIABLE] = str(sources.absolute())
    must_differ = 0
    for product in products:
        own = [row for row in rows if row["product"] == product]
        given = product, own, FAULTS[product] if seeded else "", sources is not None
        with get_context("spawn").Pool(1) as pool:  # a process can have one emulator
            results = pool.apply(compute, given)
        must_differ += report(product, list(zip(own, results, strict=True)), show)
    sys.exit(must_differ > 0)


def compute(product: str, rows: list[dict[str, Any]], defects: str, from_sources: bool) -> list[tuple[str, str]]:
    """Return (sha256 of grad_input, route or "") of each row on the emulator or on kernels."""
    os.environ[VARIABLE] = defects
    results = []
    for row in rows:
        case = Case.from_record(row["case"])
        backend = kernel(product, row["route"], case) if from_sources else emulator(product)
        operands = make_operands(case)
        gradient = operands.gradient.copy()
        gradient[np.isnan(gradient)] = np.nan  # the recorded NaN had no payloads
        call = allocate(replace(operands, gradient=gradient))
        if not from_sources and unsupported(backend, case.api, case.dtype, case.index_dtype) is not None:
            call = lifted(call)
        outcome = backend.run(call)
        if outcome.status is not Status.COMPLETED:
            raise click.ClickException(f"{product} {case.to_json()}: {outcome.message}")
        result = call.tensors["grad_input"].array.tobytes()
        results.append((hashlib.sha256(result).hexdigest(), "" if from_sources else backend.route(call)))
    return results


@cache
def emulator(product: str) -> Backend:
    return create(f"emulator-{product.lower()}")


def kernel(product: str, route: str, case: Case) -> Backend:
    name = KERNELS_950[case.api.name] if product == "950" else f"{route.partition(' ')[0]}-a2"
    return compiled(f"ascendc:ops-nn/{name}", case.dtype)


@cache
def compiled(name: str, dtype: str) -> Backend:
    prepare(name, print, dtype)
    return create(name)


def lifted(call: Call) -> Call:
    """Return the 3-D call on planes of depth 1 of a contiguous 2-D call, on the same memory."""
    windows = call.attributes
    assert isinstance(windows, Windowed)
    lists = {name: getattr(windows, name) for name in LIFTED}
    axes = {name: (LIFTED[name], *values * (3 - len(values))) for name, values in lists.items() if values}
    tensors = {name: _lifted(tensor) for name, tensor in call.tensors.items()}
    operator = OPERATORS["MaxPool3dWithArgmaxBackward"]
    return Call(operator, replace(windows, **axes), tensors, call.deterministic)


LIFTED = {"kernel_size": 1, "stride": 1, "padding": 0, "dilation": 1}


def _lifted(tensor: Tensor) -> Tensor:
    batch, channels, rows, columns = tensor.strides
    return replace(tensor, array=tensor.array[:, :, None], strides=(batch, channels, channels, rows, columns))


def report(product: str, compared: list[tuple[dict[str, Any], tuple[str, str]]], show: int) -> int:
    """Print the equal rows by template; return the number of rows that differ and must not."""
    counts: Counter[tuple[str, str]] = Counter()
    shown: Counter[str] = Counter()
    must_differ = 0
    for row, (digest, route) in compared:
        template, key = template_and_key(row["route"])
        same_bits = digest == row["sha256"]
        has_key = route and not (template.startswith(NO_KEY) or route.startswith(NO_KEY))
        same_key = not has_key or key == template_and_key(route)[1]
        must = row["bits_are"] == "only" and row["verdict"] == "conforms"
        must_differ += must and not same_bits
        kind = row["bits_are"] if row["verdict"] == "conforms" else "violates"
        if has_key:
            counts.update({(template, "keys"): 1, (template, "same key"): same_key})
        counts.update({(template, kind): 1, (template, f"same {kind}"): same_bits})
        for what, agrees in ((f"bits ({kind})", same_bits), ("key", same_key)):
            shown[what] += not agrees
            if not agrees and shown[what] <= show:
                print(f"{product} {what} differ: {row['route']}; here {route or '-'}; {json.dumps(row['case'])}")
    kinds = ("only", "one of several", "violates")
    print(f"\n{product:<45} {'keys':>15} " + " ".join(f"{kind:>15}" for kind in kinds))
    templates = sorted({template for template, _ in counts})
    for template in templates:
        print(f"{template:<45} {line(counts, [template], kinds)}")
    print(f"{'all':<45} {line(counts, templates, kinds)}")
    return must_differ


def line(counts: Counter[tuple[str, str]], templates: list[str], kinds: tuple[str, ...]) -> str:
    def total(what: str) -> int:
        return sum(counts[template, what] for template in templates)

    pairs = [("same key", "keys"), *((f"same {kind}", kind) for kind in kinds)]
    cells = [f"{total(same):,} of {total(every):,}" if total(every) else "-" for same, every in pairs]
    return " ".join(f"{cell:>15}" for cell in cells)


def template_and_key(route: str) -> tuple[str, str]:
    """Return (template with its key, key) of a recorded route or one of the emulator's."""
    if match := re.search(r"; key (\S+);", route):
        return route, match[1]
    *_, tiling, key = re.sub(r" (full|simd\d)?$", "", route).split(" ")
    return f"{tiling.replace('Tiling', ' ').replace('  ', ' ').strip()} {key}", KEYS.get(key, key)


if __name__ == "__main__":
    main()
