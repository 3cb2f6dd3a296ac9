"""The standard that a contract of ours names: no element farther than a thousandth from the exact sum."""

from dataclasses import dataclass

import numpy as np

from poolproof.references.standards import Standard


@dataclass(frozen=True, kw_only=True)
class Within(Standard):
    tolerance: float

    def judge(self, deviations):
        if not np.isfinite(deviations.rounded).all():
            return None  # the contract says nothing about NaN and infinities
        return bool((deviations.rounded_error <= self.tolerance * np.abs(deviations.rounded)).all())


WITHIN_ONE_IN_A_THOUSAND = Within(name="example-contract", source="contract of the example", tolerance=1e-3)
