"""Copies of a correct backend with one fault each: each is wrong in what it returns, and returns.

Name them on a command line as ``scatter_backends:honest`` or ``scatter_backends:lost`` with this folder on
PYTHONPATH. A fault is one step of the honest one done otherwise, so that it is known which claim it breaks and where;
those under ``@fault(step, check)`` break a check that has to notice them.
"""

import ctypes
from dataclasses import replace
from itertools import count

import numpy as np

from poolproof.backends.abilities import ALL, Abilities
from poolproof.backends.base import Call, Outcome, Status
from poolproof.references.formats import FORMATS
from poolproof.references.forward import forward_maximum, window_cells
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule
from poolproof.references.operators import Operator
from poolproof.references.products import PRODUCTS
from poolproof.references.sequences import HAZARDS
from scatter import Scatter, Sequenced, axes_of, fault, planes_of

honest = Scatter


def plane_size(call):  # type: ignore[no-untyped-def]
    return int(np.prod(call.tensors["self"].shape[-call.operator.spatial_rank :]))


def beyond_the_end(tensor):  # type: ignore[no-untyped-def]
    """The first bytes of the guard band behind a tensor."""
    return tensor.buffer[len(tensor.buffer) - tensor.guard :][:8]


@fault("route_terms", "interval")
def lost(self, call, cells, terms):
    """The last window's gradient does not arrive."""
    return cells[:-1], terms[:-1]


@fault("route_terms", "interval")
def duplicated(self, call, cells, terms):
    """The last window's gradient arrives twice."""
    return np.append(cells, cells[-1:]), np.append(terms, terms[-1:])


@fault("route_terms", "interval")
def misrouted(self, call, cells, terms):
    """The last window's gradient lands one cell further on."""
    return np.append(cells[:-1], (cells[-1:] + 1) % max(call.tensors["self"].array.size, 1)), terms


@fault("store", "written")
def unwritten(self, call, values):
    """The last cell is never written."""
    for place in np.argwhere(np.ones(values.shape, bool))[:-1]:
        call.tensors["grad_input"].array[tuple(place)] = values[tuple(place)]


@fault("narrow", "interval")
def truncating(self, call, sums):
    """Sums are cut instead of rounded."""
    exact = sums.astype(np.float64)
    ulp = FORMATS[call.dtype].ulp(exact)
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(exact), np.trunc(exact / ulp) * ulp, exact)


@fault("accumulate", "interval")
def half_accumulator(self, call, cells, terms, size):
    """Partial sums are held in float16."""
    sums = np.zeros(size, np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add.at(sums, cells, terms.astype(np.float16))
    return sums


@fault("store", "interval")
def adds_to_output(self, call, values):
    """What was in memory is added to, not replaced."""
    out = call.tensors["grad_input"].array
    with np.errstate(over="ignore", invalid="ignore"):
        out[...] = (out.astype(np.float64) + values).astype(out.dtype)


@fault("accumulate", "unreached")
def zero_garbage(self, call, cells, terms, size):
    """Cells that nothing reaches hold the smallest number instead of zero."""
    sums = Scatter.accumulate(self, call, cells, terms, size)
    sums[np.bincount(cells, minlength=size) == 0] = 2.0**-14
    return sums


@fault("run", "sanitizer")
def races(self, call, mode=""):
    """Values are right by luck, as who watches from inside says."""
    return replace(Scatter.run(self, call, mode), sanitizer=("racecheck: store and store of two cores",))


@fault("store", "inputs_untouched")
def writes_input(self, call, values):
    """A scratch value is left in indices."""
    Scatter.store(self, call, values)
    call.tensors["indices"].array[..., :1] = 0


@fault("store", "memory_untouched")
def writes_past(self, call, values):
    """A block is stored past the end of grad_input."""
    Scatter.store(self, call, values)
    beyond_the_end(call.tensors["grad_input"])[:] = 0


@fault("store", "memory_untouched")
def adds_past(self, call, values):
    """Something is added to what lies past the end of grad_input."""
    Scatter.store(self, call, values)
    beyond = beyond_the_end(call.tensors["grad_input"]).view(call.tensors["grad_input"].dtype)
    beyond += np.ones((), beyond.dtype)


@fault("store", "memory_untouched")
def fills_gaps(self, call, values):
    """A strided output is written as one block, gaps included."""
    call.tensors["grad_input"].storage[:] = 0
    Scatter.store(self, call, values)


@fault("backward", "layout_invariance")
def ignores_strides(self, call):
    """grad_output is read as if it were contiguous."""
    tensor = call.tensors["grad_output"]
    dense = tensor.storage.view(tensor.dtype)[: tensor.array.size]
    if dense.size == tensor.array.size:
        tensor.__dict__["array"] = dense.reshape(tensor.shape)
    Scatter.backward(self, call)


@fault("route_terms", "index_dtype_invariance")
def narrows_indices(self, call, cells, terms):
    """int32 indices are read through 8 bits."""
    plane = plane_size(call)
    return (cells // plane * plane + cells % plane % 256 if call.index_dtype == "int32" else cells), terms


@fault("route_terms", "repeat")
def unrepeatable(self, call, cells, terms):
    """Sums are made from the smallest term to the greatest in one call, and the other way round in the next."""
    number = next(vars(self).setdefault("calls", count()))
    order = np.argsort(np.abs(terms), kind="stable")[:: 1 if number % 2 else -1]
    return cells[order], terms[order]


@fault("route_terms", "scale_equivariance")
def absolute_threshold(self, call, cells, terms):
    """Gradients below 2**-6 count as zero."""
    return cells, np.where(np.abs(terms) < 2.0**-6, 0, terms).astype(terms.dtype)


@fault("results", "results")
def wrong_result(self, call):
    """grad_input comes back without its batch axis."""
    return {name: (shape[1:], dtype) for name, (shape, dtype) in Scatter.results(self, call).items()}


@fault("store_forward", "maximum")
def zero_padded(self, call, maxima, indices):
    """Padding and the initial maximum count as zero."""
    Scatter.store_forward(self, call, np.maximum(maxima, 0).astype(maxima.dtype), indices)


@fault("forward", "index_rule")
def last_maximum(self, call):
    """The last of several maxima wins."""
    planes, axes = planes_of(call), axes_of(call)
    maxima, indices = forward_maximum(planes, axes)
    flat = planes.reshape(len(planes), plane_size(call))
    cells, valid = window_cells(axes)
    for plane in range(len(flat)):
        for window in range(len(cells)):
            best = maxima.reshape(len(flat), len(cells))[plane, window]
            same = cells[window][valid[window] & (flat[plane, cells[window]] == best)]
            if len(same):
                indices.reshape(len(flat), len(cells))[plane, window] = same[-1]
    self.store_forward(call, maxima, indices)


@fault("store_forward", "index_points")
def window_local_indices(self, call, maxima, indices):
    """Indices count from the plane's second cell."""
    Scatter.store_forward(self, call, maxima, indices + 1)


@fault("store_forward", "round_trip")
def tensor_indices(self, call, maxima, indices):
    """The forward's indices count from the tensor's first cell, as no backward reads them."""
    planes = np.arange(len(indices)).reshape(-1, *[1] * (indices.ndim - 1))
    Scatter.store_forward(self, call, maxima, indices + plane_size(call) * planes)


@fault("run", "refusal", interface="torch-cpu")
def refuses_dilation(self, call, mode=""):
    """Legal calls with dilation are turned down, by an interface whose documents allow no refusal."""
    if call.attributes.is_dilated:
        return Outcome(Status.REFUSED, code=161002, message="dilation must be 1")
    return Scatter.run(self, call, mode)


@fault("run", "modes", modes=("other",))
def races_in_another(self, call, mode=""):
    """Only who watches from inside sees what is wrong in one way to make a call."""
    said = ("racecheck: store and store of two cores",) if mode else ()
    return replace(Scatter.run(self, call, mode), sanitizer=said)


@fault("run", "memory_kept", in_use=0, device_memory_in_use=lambda self: self.in_use)
def leaks(self, call, mode=""):
    """Every call leaves 64 bytes of device memory behind."""
    self.in_use += 64
    return Scatter.run(self, call, mode)


def _lost_in_another(self, call, cells, terms):  # type: ignore[no-untyped-def]
    return (cells[:-1], terms[:-1]) if self.loses else (cells, terms)


@fault("run", "modes", modes=("other",), route_terms=_lost_in_another)
def other_mode(self, call, mode=""):
    """One way to make a call loses the last window's gradient."""
    self.loses = mode == "other"
    return Scatter.run(self, call, mode)


@fault("run", "variants", base=other_mode, modes=(), variants=("other",))
def wrong_variant(self, call, mode=""):
    """What other code computes loses the last window's gradient."""
    return other_mode.run(self, call, mode)


def _previous(self, call, value):  # type: ignore[no-untyped-def]
    """What was kept of the call of the same shapes before this one, in whose place ``value`` is kept now."""
    kept = vars(self).setdefault("kept", {})
    key = (call.operator.name, call.dtype, *(tensor.shape for tensor in call.tensors.values()))
    before, kept[key] = kept.get(key), value
    return before


@fault("narrow", "state")
def remembers(self, call, sums):
    """Where another call of the same shapes came before, its result is given again."""
    now = Scatter.narrow(self, call, sums)
    previous = _previous(self, call, now)
    return now if previous is None or np.array_equal(previous, now, equal_nan=True) else previous


@fault("forward", "state")
def remembers_windows(self, call):
    """Where another forward of the same shapes came before, its windows are looked at again."""
    first = _previous(self, call, call.attributes) or call.attributes
    _previous(self, call, first)
    Scatter.forward(self, replace(call, attributes=first))


@fault("accumulate")
def stores(self, call, cells, terms, size):
    """Stores where it should add, as an unpooling does: wrong where two windows take the same cell."""
    sums = np.zeros(size, terms.dtype)
    sums[cells] = terms
    return sums


class Disturbed(Sequenced):
    """Reads its inputs before the work that makes them has run, or whatever ``broken`` names in its place."""

    check = "streams"

    def __init__(self, *broken: str) -> None:
        super().__init__(*broken or [next(iter(HAZARDS))])


class IndexOutside(Scatter):
    """Windows without a cell are accepted and get an index behind the plane, which the backward passes over."""

    check = "empty_window"
    index = 1 << 20

    def objection(self, call):  # type: ignore[no-untyped-def]
        return ""

    def forward(self, call):  # type: ignore[no-untyped-def]
        if any(axis.has_empty_window for axis in axes_of(call)):
            call.tensors["out"].array[...] = -np.inf
            call.tensors["indices"].array[...] = self.index
        else:
            super().forward(call)

    def route_terms(self, call, cells, terms):  # type: ignore[no-untyped-def]
        indices = call.tensors["indices"].array.ravel()
        inside = (indices >= 0) & (indices < plane_size(call))
        return cells[inside], terms[inside]


@fault("store", base=IndexOutside)
def writes_where_it_points(self, call, values):
    """The backward writes at the index behind the plane that windows without a cell get."""
    Scatter.store(self, call, values)
    tensor = call.tensors["grad_input"]
    for index in call.tensors["indices"].array.ravel()[-1:]:
        if index >= values.size:
            ctypes.memset(tensor.array.ctypes.data + int(index) * tensor.dtype.itemsize, 0, tensor.dtype.itemsize)


writes_just_behind = type("writes_just_behind", (writes_where_it_points,), {"index": 64})
no_index_for_empty_window = type("no_index_for_empty_window", (IndexOutside,), {"index": -1})
first_cell_for_empty_window = type("first_cell_for_empty_window", (IndexOutside,), {"index": 0})
"""An index behind the plane's first cell by 64; two that are right: none, and the plane's first cell."""


@fault("run")
def other_strides(self, call, mode=""):
    """Right, but says that its outputs run fastest along their first axis; those that read so find them."""
    shapes = {name: call.tensors[name].shape for name in call.operator.outputs}
    own = {name: tuple(int(np.prod(shape[:axis])) for axis in range(len(shape))) for name, shape in shapes.items()}
    outputs = {name: call.tensors[name].restrided(strides) for name, strides in own.items()}
    return replace(Scatter.run(self, replace(call, tensors={**call.tensors, **outputs}), mode), strides=own)


@fault("store", base=other_strides)
def other_strides_and_past(self, call, values):
    """It also writes where nothing of the output lies."""
    Scatter.store(self, call, values)
    call.tensors["grad_input"].buffer[-1:] = 0


@fault("store_forward")
def dense_outputs(self, call, maxima, indices):
    """Outputs are written as if they were contiguous."""
    for name, values in (("out", maxima), ("indices", indices)):
        tensor = call.tensors[name]
        tensor.storage.view(tensor.dtype)[: values.size] = values.ravel()


@fault("store_forward")
def dense_outputs_that_lack_one(self, call, maxima, indices):
    """The last index goes nowhere, or to where nobody looks."""
    dense_outputs.store_forward(self, call, maxima, indices.ravel()[:-1])


@fault("store_forward", base=dense_outputs)
def dense_outputs_and_past(self, call, maxima, indices):
    """It also writes where nothing of the output lies."""
    dense_outputs.store_forward(self, call, maxima, indices)
    call.tensors["out"].buffer[-1:] = 0


class Picking(Scatter):
    """A forward that picks by one rule, and declares one."""

    def __init__(self, picks: ForwardRule = FAMILY_RULE, declared: ForwardRule = FAMILY_RULE) -> None:
        self.picks, self.declared = picks, declared

    def forward_rule(self, call: Call) -> ForwardRule:
        return self.declared

    def forward(self, call: Call) -> None:
        self.store_forward(call, *forward_maximum(planes_of(call), axes_of(call), self.picks))


class PicksLast(Picking):
    """A forward that takes the last of tied maxima, and says so."""

    def __init__(self) -> None:
        super().__init__(*[ForwardRule.parse("last")] * 2)


class PicksLastAndTakesNoIndices(PicksLast):
    """A backward that looks for the maxima itself, of which it takes the last."""

    def abilities(self, operator: Operator) -> Abilities:
        return Abilities(indices=False)

    def route_terms(self, call: Call, cells: np.ndarray, terms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        planes = planes_of(call)
        _, indices = forward_maximum(planes, axes_of(call), self.picks)
        starts = np.arange(len(planes)) * plane_size(call)
        return (indices.reshape(len(planes), -1) + starts[:, None]).ravel(), terms


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


class Plain(Able):
    """Declares away whatever can be, but its own indices, and cannot go on where it is asked for that all the same."""

    def __init__(self) -> None:
        lacks = ("padding", "dilation", "ceil_mode", "unbatched", "empty_batch", "unequal_axes")
        super().__init__(Abilities(**dict.fromkeys(lacks, False), layouts=()))

    def run(self, call: Call, mode: str = "") -> Outcome:
        lacking = self.able.lacking(call.operator, call.tensors["self"].shape, call.attributes)
        strided = [name for name, tensor in call.tensors.items() if not tensor.array.flags.c_contiguous]
        assert not lacking and not strided, (lacking, strided)
        return super().run(call, mode)


WithoutPaddingOnA2 = type("WithoutPaddingOnA2", (WithoutPadding,), {"product": PRODUCTS["A2"]})
"""The same under a contract."""

disturbed, index_outside = Disturbed, IndexOutside

FAULTS = {
    name: (backend, backend.check)
    for name, backend in list(globals().items())
    if name.islower() and isinstance(backend, type) and "check" in vars(backend)
}
"""Fault -> (backend, a check that must notice it)."""
