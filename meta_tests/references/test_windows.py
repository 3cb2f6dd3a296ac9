"""Windows answer for themselves; what chooses between their kinds is complete, or says by name what is missing."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from poolproof.references.contract.call import ContractError
from poolproof.references.contract.expectation import require_apis
from poolproof.references.contract.vocabulary import SIGNATURES
from poolproof.references.indices import FLAT, MASK, Indices
from poolproof.references.operators import Operator
from poolproof.references.windows import KINDS, Adaptive, Windowed, WindowKind, per_kind


def test_what_is_passed_and_what_is_said_means_the_same() -> None:
    for windows in (Windowed((2, 3)), Windowed((3,), (1,), (1,)), Adaptive((2, 3))):
        for one, other in zip(windows.axes((7, 8)), windows.passed().axes((7, 8)), strict=True):
            assert np.array_equal(one.positions, other.positions)
    assert str(Windowed((3, 3), stride=(1,), ceil_mode=True)) == "kernel_size [3, 3], stride [1], ceil_mode True"
    assert str(Adaptive((2, 2))) == "output_size [2, 2]"
    assert str(replace(Windowed((3,)), ceil_mode=False)) == "kernel_size [3]"


@dataclass(frozen=True)
class Stray(Windowed):
    """A kind of windows that is not among `Windows`."""


def test_what_lacks_something_is_named() -> None:
    @dataclass(frozen=True)
    class Silent(WindowKind):
        size: int

    with pytest.raises(TypeError, match="abstract"):
        Silent(1)  # type: ignore[abstract]
    with pytest.raises(TypeError, match="StrayPool has Stray windows, which are not among `Windows`"):
        Operator("StrayPool", 2, Stray, None)
    with pytest.raises(TypeError, match="Adaptive windows have no strategy"):
        per_kind("strategy", {Windowed: 1})
    assert per_kind("strategy", dict.fromkeys(KINDS, 1)) == dict.fromkeys(KINDS, 1)
    given = {api: None for api in SIGNATURES if api != "aclnnMaxPool2dWithMask"}
    with pytest.raises(ContractError, match="aclnnMaxPool2dWithMask has no contract"):
        require_apis("contract", given)


@pytest.mark.parametrize("kind", [FLAT, MASK], ids=["flat", "mask"])
def test_stored_indices_are_read_back(kind: Indices) -> None:
    indices = np.arange(24).reshape(2, 3, 4)[:, :, :2]
    tensor = np.full(kind.tensor_shape((2,), (3, 2), 4), 99, kind.dtypes[0])
    kind.encode(indices, tensor)
    assert np.array_equal(kind.decode(tensor, indices.shape), indices)
    assert kind.known(tensor, indices.shape, 4).nbytes == 4 * indices.size
    assert kind.known(tensor, indices.shape, 1).size == (0 if kind is MASK else indices.size)
