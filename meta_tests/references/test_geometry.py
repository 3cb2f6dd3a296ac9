"""Sizes, windows and maxima agree with torch, which is where the operator library's rules come from."""

import numpy as np
import pytest

from poolproof.references.forward import forward_maximum
from poolproof.references.operators import FORWARDS, Operator
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.plan.aspects import CASE_ASPECTS

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # as its backend does: threads that wait for cases this small cost more than the cases

TORCH_FORWARDS = [operator for operator in FORWARDS if operator.aten]
VALUES = CASE_ASPECTS["special_values"].profile.values + CASE_ASPECTS["values"].profile.values
CASES = 5000


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
@pytest.mark.parametrize("operator", TORCH_FORWARDS, ids=lambda operator: operator.name)
def test_forward_agrees_with_torch(operator: Operator, dtype: str) -> None:
    """Shapes, maxima and indices, on 5,000 cases over all operators and dtypes; no disagreement is known."""
    count = CASES // (4 * len(TORCH_FORWARDS)) + 1
    for case in generate(cases(operator, dtype, "int64", Profile(values=VALUES)), count, seed=1):
        values = make_operands(case).values.astype(np.float64)
        tensor = torch.from_numpy(values).to(getattr(torch, case.dtype))
        out, indices = getattr(torch.ops.aten, case.api.aten)(tensor, *case.api.passed(case.attributes))
        assert tuple(out.shape) == case.pooled_shape, case.to_json()
        maxima, flat = forward_maximum(values.reshape(case.planes, *case.spatial_shape), case.axes)
        np.testing.assert_array_equal(out.double().numpy().ravel(), maxima.ravel(), case.to_json())
        np.testing.assert_array_equal(indices.numpy().ravel(), flat.ravel(), case.to_json())
