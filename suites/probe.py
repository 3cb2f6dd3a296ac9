"""Finding out, from outputs alone, how an implementation accumulates.

Crafted gradients make the models disagree: a float32 sum keeps what a native one loses. The narrowest model under
which nothing is rejected is the measured one; a backend declares it, and a test holds the declaration against
the measurement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from poolproof.backends.base import Backend, Status
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.criterion import acceptance
from poolproof.references.operators import Operator
from poolproof.suites.case import Case
from poolproof.suites.trial import Trial

MEMORY_FORMATS = ("contiguous", "channels_last")

_CANDIDATES = (ACC32, NATIVE)
"""From the narrowest to the widest."""


@dataclass(frozen=True)
class Measurement:
    """How one operator accumulates in one dtype and memory format.

    ``model`` is the narrowest candidate that rejects nothing, None if each rejects something. ``rejected`` counts,
    per candidate, rejected cells of the ``judged`` cells that three or more gradients reach.
    """

    model: AccumulationModel | None
    judged: int
    rejected: dict[str, int]


def measure_accumulation(
    backend: Backend, operator: Operator, dtype: str, index_dtype: str, memory_format: str
) -> Measurement:
    """Run the crafted gradients and see which models survive."""
    judged, rejected = 0, {str(model): 0 for model in _CANDIDATES}
    for case in probe_cases(operator, dtype, index_dtype, memory_format):
        trial = Trial(case, backend)
        if trial.first.outcome.status is not Status.COMPLETED:
            raise RuntimeError(f"probe case was not run: {trial.first.outcome.message}")
        crowded = trial.content.sums.count >= 3
        judged += int(crowded.sum())
        for model in _CANDIDATES:
            accepted = acceptance(trial.content.sums, trial.fmt, model).accepts(trial.gradient_input)
            rejected[str(model)] += int((~accepted & crowded).sum())
    survivors = [model for model in _CANDIDATES if rejected[str(model)] == 0]
    return Measurement(survivors[0] if survivors else None, judged, rejected)


def probe_cases(operator: Operator, dtype: str, index_dtype: str, memory_format: str) -> Iterator[Case]:
    """Overlapping windows that crowd onto few cells, with every crafted gradient, three geometries each."""
    rank = operator.spatial_rank
    layouts = {} if memory_format == "contiguous" else dict.fromkeys(operator.tensors, memory_format)
    for gradient in ("big_among_ones", "cancellation", "positive", "uniform"):
        for seed, length in enumerate((6, 9, 12)):
            adaptive = operator.pooling == "adaptive"
            yield Case(
                operator=operator.name,
                dtype=dtype,
                index_dtype=index_dtype,
                shape=(2, 20, *(length,) * rank),
                gradient=gradient,
                indices="crowded",
                layouts=tuple(sorted(layouts.items())),
                seed=seed,
                output_size=(length * 3, *(length,) * (rank - 1)) if adaptive else (),
                kernel_size=() if adaptive else (3,),
                stride=() if adaptive else (1,),
                padding=() if adaptive else (1,),
            )
