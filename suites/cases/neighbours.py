"""Neighbours of a case, which an implementation that remembers too much confuses with it, and its producers.

A neighbour shares something that a cache might take for everything (shapes, attributes, dtypes) and differs in the
rest. A producer is the forward that a backward takes its indices or its mask from.
"""

from __future__ import annotations

from dataclasses import replace

from poolproof.references.operators import OPERATORS
from poolproof.suites.cases.case import Case, CaseError


def neighbours(case: Case) -> list[Case]:
    """List the legal cases with other attributes, another layout or other data, and of an empty batch."""
    laid_out, is_batched = dict(case.layouts), len(case.shape) == case.api.spatial_rank + 2
    sliced = tuple((name, "sliced") for name in sorted(case.api.strided) if name not in laid_out)
    candidates = [
        replace(case, attributes=case.attributes.other(), layouts=(), literals=()),
        replace(case, layouts=sliced),
        replace(case, gradient="special", values="infinities", indices="last", seed=case.seed + 1, literals=()),
        replace(case, shape=(0, *case.shape[1:]), layouts=(), literals=()) if is_batched else None,
    ]
    return [candidate for candidate in candidates if candidate is not None and _is_legal(candidate)]


def twin(case: Case) -> Case | None:
    """Find a case of the same shapes and layouts, but a kernel of another size; None where there is none."""
    if 0 in case.shape or case.literals:
        return None
    for windows in case.attributes.resized(case.api.spatial_rank):
        candidate = replace(case, attributes=windows)
        if _is_legal(candidate) and candidate.pooled_shape == case.pooled_shape and not candidate.has_bit_mask:
            return candidate
    return None


def producers(case: Case) -> list[Case]:
    """List the forwards of this geometry and data that make what a backward takes, its own index dtype first."""
    if case.api.producer is None:
        return []
    literals = tuple((name, values) for name, values in case.literals if name == "self")
    forward = OPERATORS[case.api.producer]
    return [
        replace(case, operator=forward.name, index_dtype=index_dtype, layouts=(), literals=literals)
        for index_dtype in dict.fromkeys((case.index_dtype, "int64", "int32"))
    ]


def needs_producer(case: Case) -> bool:
    """Tell whether nobody but the implementation's own forward can make what a backward takes."""
    return "indices" in case.api.inputs and 0 not in case.shape and (case.has_bit_mask or case.has_empty_window())


def auxiliary_cases(case: Case) -> list[Case]:
    """List the neighbours, and the twin."""
    same_shapes = twin(case)
    return neighbours(case) + ([same_shapes] if same_shapes else [])


def _is_legal(case: Case) -> bool:
    try:
        Case.from_json(case.to_json())
    except CaseError:
        return False
    return not case.has_empty_window() and case.memory_bytes() < 1 << 26
