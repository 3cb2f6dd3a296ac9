"""Copies of a correct backend with one fault each: each is wrong in what it returns, and returns.

Name them on a command line as ``scatter_backends:honest`` or ``scatter_backends:lost`` with this folder on
PYTHONPATH. A fault is a small change to the honest one, so that it is known which claim it breaks and where.
"""

import ctypes
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import numpy as np

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Call, Hazard, Outcome, Status
from poolproof.references.formats import FORMATS
from poolproof.references.forward import forward_maximum, window_cells
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule
from poolproof.references.operators import Operator
from poolproof.references.products import PRODUCTS
from scatter import Scatter, SimulatedStreams, axes_of, planes_of


class Lost(Scatter):
    """The last window's gradient does not arrive."""

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        return cells[:-1], terms[:-1]


class Duplicated(Scatter):
    """The last window's gradient arrives twice."""

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        return np.append(cells, cells[-1:]), np.append(terms, terms[-1:])


class Misrouted(Scatter):
    """The last window's gradient lands one cell further on."""

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        size = call.tensors["self"].array.size
        moved = cells.copy()
        moved[-1:] = (moved[-1:] + 1) % max(size, 1)
        return moved, terms


class Unwritten(Scatter):
    """The last cell is never written."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        flat = np.argwhere(np.ones(values.shape, bool))
        for place in flat[:-1]:
            call.tensors["grad_input"].array[tuple(place)] = values[tuple(place)]


class Truncating(Scatter):
    """Sums are cut instead of rounded."""

    def narrow(self, call, sums):  # type: ignore[no-untyped-def]
        fmt = FORMATS[call.dtype]
        exact = sums.astype(np.float64)
        ulp = fmt.ulp(exact)
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(exact), np.trunc(exact / ulp) * ulp, exact)


class HalfAccumulator(Scatter):
    """Partial sums are held in float16."""

    def accumulate(self, call, cells, terms, size):  # type: ignore[no-untyped-def]
        sums = np.zeros(size, np.float16)
        with np.errstate(over="ignore", invalid="ignore"):
            np.add.at(sums, cells, terms.astype(np.float16))
        return sums


class AddsToOutput(Scatter):
    """What was in memory is added to, not replaced."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        out = call.tensors["grad_input"].array
        with np.errstate(over="ignore", invalid="ignore"):
            out[...] = (out.astype(np.float64) + values).astype(out.dtype)


class ZeroGarbage(Scatter):
    """Cells that nothing reaches hold the smallest number instead of zero."""

    def accumulate(self, call, cells, terms, size):  # type: ignore[no-untyped-def]
        sums = super().accumulate(call, cells, terms, size)
        sums[np.bincount(cells, minlength=size) == 0] = 2.0**-14
        return sums


class WritesInput(Scatter):
    """A scratch value is left in indices."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        super().store(call, values)
        call.tensors["indices"].array[..., :1] = 0


class WritesPast(Scatter):
    """A 32-byte block is stored past the end of grad_input."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        super().store(call, values)
        tensor = call.tensors["grad_input"]
        tensor.buffer[len(tensor.buffer) - tensor.guard :][:8] = 0


class AddsPast(Scatter):
    """Something is added to what lies past the end of grad_input."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        super().store(call, values)
        tensor = call.tensors["grad_input"]
        beyond = tensor.buffer[len(tensor.buffer) - tensor.guard :][:8].view(tensor.dtype)
        beyond += np.ones((), tensor.dtype)


class FillsGaps(Scatter):
    """A strided output is written as one block, gaps included."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        call.tensors["grad_input"].storage[:] = 0
        super().store(call, values)


class IgnoresStrides(Scatter):
    """grad_output is read as if it were contiguous."""

    def backward(self, call):  # type: ignore[no-untyped-def]
        tensor = call.tensors["grad_output"]
        dense = tensor.storage.view(tensor.dtype)[: tensor.array.size]
        if dense.size == tensor.array.size:
            tensor.__dict__["array"] = dense.reshape(tensor.shape)
        super().backward(call)


class NarrowsIndices(Scatter):
    """int32 indices are read through 8 bits."""

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        if call.index_dtype == "int32":
            plane = int(np.prod(call.tensors["self"].shape[-call.operator.spatial_rank :]))
            return cells // plane * plane + cells % plane % 256, terms
        return cells, terms


class Unrepeatable(Scatter):
    """Sums are made from the smallest term to the greatest in one call, and the other way round in the next."""

    def __init__(self) -> None:
        super().__init__()
        self._calls = count()

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        order = np.argsort(np.abs(terms), kind="stable")[:: 1 if next(self._calls) % 2 else -1]
        return cells[order], terms[order]


class AbsoluteThreshold(Scatter):
    """Gradients below 2**-6 count as zero."""

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        return cells, np.where(np.abs(terms) < 2.0**-6, 0, terms).astype(terms.dtype)


class WrongResult(Scatter):
    """grad_input comes back without its batch axis."""

    def results(self, call):  # type: ignore[no-untyped-def]
        return {name: (shape[1:], dtype) for name, (shape, dtype) in super().results(call).items()}


class ZeroPadded(Scatter):
    """Padding and the initial maximum count as zero."""

    def store_forward(self, call, maxima, indices):  # type: ignore[no-untyped-def]
        super().store_forward(call, np.maximum(maxima, 0).astype(maxima.dtype), indices)


class LastMaximum(Scatter):
    """The last of several maxima wins."""

    def forward(self, call):  # type: ignore[no-untyped-def]
        values = call.tensors["self"].array
        shape, rank = values.shape, call.operator.spatial_rank
        planes = values.reshape(int(np.prod(shape[:-rank])), *shape[-rank:])
        axes = axes_of(call)
        maxima, indices = forward_maximum(planes, axes)
        flat = planes.reshape(len(planes), int(np.prod(shape[-rank:])))
        cells, valid = window_cells(axes)
        for plane in range(len(flat)):
            for window in range(len(cells)):
                best = maxima.reshape(len(flat), len(cells))[plane, window]
                same = cells[window][valid[window] & (flat[plane, cells[window]] == best)]
                if len(same):
                    indices.reshape(len(flat), len(cells))[plane, window] = same[-1]
        self.store_forward(call, maxima, indices)


class Picking(Scatter):
    """A forward that picks by one rule, and declares one."""

    def __init__(self, picks: ForwardRule = FAMILY_RULE, declared: ForwardRule = FAMILY_RULE) -> None:
        self.picks, self.declared = picks, declared

    def forward_rule(self, call: Call) -> ForwardRule:
        return self.declared

    def forward(self, call: Call) -> None:
        self.store_forward(call, *forward_maximum(planes_of(call), axes_of(call), self.picks))


class Able(Scatter):
    """Declares some abilities."""

    def __init__(self, declared: Abilities = ALL) -> None:
        self.able = declared

    def abilities(self, operator: Operator) -> Abilities:
        return self.able


class WithoutPadding(Able):
    """Has no padding, declares that, and refuses it as anybody would."""

    def __init__(self) -> None:
        super().__init__(Abilities(padding=False))

    def objection(self, call: Call) -> str:
        return "padding is not supported" if call.attributes.is_padded else super().objection(call)


class WithoutPaddingOnA2(WithoutPadding):
    """The same under a contract."""

    product = PRODUCTS["A2"]


class PicksLastAndTakesNoIndices(Picking):
    """A backward that looks for the maxima itself, of which it takes the last."""

    def __init__(self) -> None:
        super().__init__(*[ForwardRule.parse("last")] * 2)

    def abilities(self, operator: Operator) -> Abilities:
        return Abilities(indices=False)

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        planes = planes_of(call)
        _, indices = forward_maximum(planes, axes_of(call), self.picks)
        starts = np.arange(len(planes)) * int(np.prod(planes.shape[1:]))
        return (indices.reshape(len(planes), -1) + starts[:, None]).ravel(), terms


class WindowLocalIndices(Scatter):
    """Indices count from the plane's second cell."""

    def store_forward(self, call, maxima, indices):  # type: ignore[no-untyped-def]
        super().store_forward(call, maxima, indices + 1)


class IndexOutsideForEmptyWindow(Scatter):
    """Windows without a cell are accepted and get an index behind the plane, which the backward passes over."""

    index = 1 << 20

    def objection(self, call):  # type: ignore[no-untyped-def]
        return ""

    def forward(self, call):  # type: ignore[no-untyped-def]
        if any(axis.has_empty_window() for axis in axes_of(call)):
            call.tensors["out"].array[...] = -np.inf
            call.tensors["indices"].array[...] = self.index
        else:
            super().forward(call)

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        indices = call.tensors["indices"].array.ravel()
        inside = (indices >= 0) & (indices < np.prod(call.tensors["self"].shape[-call.operator.spatial_rank :]))
        return cells[inside], terms[inside]


class WritesWhereItPoints(IndexOutsideForEmptyWindow):
    """Windows without a cell get an index behind the plane, and the backward writes there."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        super().store(call, values)
        tensor = call.tensors["grad_input"]
        for index in call.tensors["indices"].array.ravel()[-1:]:
            if index >= values.size:
                ctypes.memset(tensor.array.ctypes.data + int(index) * tensor.dtype.itemsize, 0, tensor.dtype.itemsize)


class WritesJustBehind(WritesWhereItPoints):
    """The same with an index 64 elements behind the plane's first cell."""

    index = 64


class NoIndexForEmptyWindow(IndexOutsideForEmptyWindow):
    """Windows without a cell get -1, which the backward passes over: that is right."""

    index = -1


class FirstCellForEmptyWindow(IndexOutsideForEmptyWindow):
    """Windows without a cell get the plane's first cell, where their gradients go: that is right."""

    index = 0


class RefusesDilation(Scatter):
    """Legal calls with dilation are turned down, by an interface whose documents allow no refusal."""

    interface = "torch-cpu"

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        if call.attributes.is_dilated:
            return Outcome(Status.REFUSED, code=161002, message="dilation must be 1")
        return super().run(call, mode)


class OtherMode(Scatter):
    """One way to make a call loses the last window's gradient."""

    modes = ("other",)

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        self.loses = mode == "other"
        return super().run(call, mode)

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        return (cells[:-1], terms[:-1]) if self.loses else (cells, terms)


class WrongVariant(OtherMode):
    """What other code computes loses the last window's gradient."""

    modes = ()
    variants = ("other",)


class Disturbed(Scatter):
    """Reads its inputs before the work that makes them has run, or whatever ``broken`` names in its place."""

    def __init__(self, *broken: Hazard) -> None:
        self.streams = SimulatedStreams(self, broken or (Hazard.INPUTS_BEING_MADE,))


class Remembers(Scatter):
    """Where another call of the same shapes came before, its result is given again."""

    def __init__(self):  # type: ignore[no-untyped-def]
        self.kept: dict = {}

    def narrow(self, call, sums):  # type: ignore[no-untyped-def]
        key = (call.operator.name, call.dtype, *(tensor.shape for tensor in call.tensors.values()))
        previous, self.kept[key] = self.kept.get(key), super().narrow(call, sums)
        if previous is None or np.array_equal(previous, self.kept[key], equal_nan=True):
            return self.kept[key]
        return previous


class RemembersWindows(Scatter):
    """Where another forward of the same shapes came before, its windows are looked at again."""

    def __init__(self):  # type: ignore[no-untyped-def]
        self.kept: dict = {}

    def forward(self, call):  # type: ignore[no-untyped-def]
        key = (call.operator.name, call.dtype, *(tensor.shape for tensor in call.tensors.values()))
        attributes = self.kept.setdefault(key, call.attributes)
        super().forward(replace(call, attributes=attributes))


class TensorIndices(Scatter):
    """The forward's indices count from the tensor's first cell, as no backward reads them."""

    def store_forward(self, call, maxima, indices):  # type: ignore[no-untyped-def]
        plane = int(np.prod(call.tensors["self"].shape[-call.operator.spatial_rank :]))
        planes = np.arange(len(indices)).reshape(-1, *[1] * (indices.ndim - 1))
        super().store_forward(call, maxima, indices + plane * planes)


class Leaks(Scatter):
    """Every call leaves 64 bytes of device memory behind."""

    in_use = 0

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        self.in_use += 64
        return super().run(call, mode)

    def device_memory_in_use(self):  # type: ignore[no-untyped-def]
        return self.in_use


class OtherStrides(Scatter):
    """Right in all but that it says that its outputs have strides of their own; those that read so find them."""

    def run(self, call, mode=""):  # type: ignore[no-untyped-def]
        own = {name: _reversed_strides(call.tensors[name].shape) for name in call.operator.outputs}
        outputs = {name: call.tensors[name].restrided(strides) for name, strides in own.items()}
        return replace(super().run(replace(call, tensors={**call.tensors, **outputs}), mode), strides=own)


def _reversed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Those of a tensor whose first axis runs fastest."""
    return tuple(int(np.prod(shape[:axis])) for axis in range(len(shape)))


class OtherStridesAndPast(OtherStrides):
    """It also writes where nothing of the output lies."""

    def store(self, call, values):  # type: ignore[no-untyped-def]
        super().store(call, values)
        call.tensors["grad_input"].buffer[-1:] = 0


FAULTS: dict[str, tuple[Callable[[], Scatter], str]] = {
    "lost": (Lost, "interval"),
    "duplicated": (Duplicated, "interval"),
    "misrouted": (Misrouted, "interval"),
    "unwritten": (Unwritten, "written"),
    "truncating": (Truncating, "interval"),
    "half_accumulator": (HalfAccumulator, "interval"),
    "adds_to_output": (AddsToOutput, "interval"),
    "zero_garbage": (ZeroGarbage, "unreached"),
    "writes_input": (WritesInput, "inputs_untouched"),
    "writes_past": (WritesPast, "memory_untouched"),
    "adds_past": (AddsPast, "memory_untouched"),
    "fills_gaps": (FillsGaps, "memory_untouched"),
    "ignores_strides": (IgnoresStrides, "layout_invariance"),
    "narrows_indices": (NarrowsIndices, "index_dtype_invariance"),
    "unrepeatable": (Unrepeatable, "repeat"),
    "absolute_threshold": (AbsoluteThreshold, "scale_equivariance"),
    "wrong_result": (WrongResult, "results"),
    "zero_padded": (ZeroPadded, "maximum"),
    "last_maximum": (LastMaximum, "index_rule"),
    "window_local_indices": (WindowLocalIndices, "index_points"),
    "index_outside": (IndexOutsideForEmptyWindow, "empty_window"),
    "other_mode": (OtherMode, "modes"),
    "wrong_variant": (WrongVariant, "variants"),
    "disturbed": (Disturbed, "streams"),
    "remembers": (Remembers, "state"),
    "remembers_windows": (RemembersWindows, "state"),
    "tensor_indices": (TensorIndices, "round_trip"),
    "leaks": (Leaks, "memory_kept"),
    "refuses_dilation": (RefusesDilation, "refusal"),
}
"""Fault -> (backend, a check that must notice it)."""

honest = Scatter
no_index_for_empty_window, first_cell_for_empty_window = NoIndexForEmptyWindow, FirstCellForEmptyWindow
writes_just_behind, writes_where_it_points = WritesJustBehind, WritesWhereItPoints
other_strides, other_strides_and_past = OtherStrides, OtherStridesAndPast
for _name, (_factory, _) in FAULTS.items():
    globals()[_name] = _factory
