"""Example calls: one that breaks a given clause and no earlier one, one that breaks two, and legal ones.

Every call starts from a legal one per API. A clause's breach changes the template of that call, and the rest is rebuilt
to fit, or it patches single arguments. No call is written out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import prod
from typing import Any, assert_never

from poolproof.references.contract.builders import unbatched
from poolproof.references.contract.call import ContractCall, ContractError, TensorArgument, changed, row_major_strides
from poolproof.references.contract.clause import (
    NOTHING_TO_BREAK,
    ONLY_950,
    PRE_950,
    SINCE_A2,
    Breach,
    Clause,
    Products,
    Reach,
    require_values,
)
from poolproof.references.contract.expectation import contract_of, expectations, find_clause, require_apis
from poolproof.references.contract.facts import Shape, adaptive_shape, axes, mask_shape, pooled_shape
from poolproof.references.contract.vocabulary import MASK_APIS, SIGNATURES, Role
from poolproof.references.products import Product
from poolproof.references.windows import Adaptive, Windowed, Windows, per_kind


@dataclass(frozen=True, kw_only=True)
class Template:
    """The parameters of a legal call; all other shapes follow from self's."""

    api: str
    shape: Shape
    tag: str
    dtype: str = "FLOAT"
    index_dtype: str = "INT32"
    windows: Windows

    def changed(self, fields: Mapping[str, Any]) -> Template:
        """Replace fields, or attributes of the windows, by values or by functions of the old value."""
        attributes = {attribute.name for attribute in self.windows.attributes()} & set(fields)
        own = {name: _changed(getattr(self, name), fields[name]) for name in fields if name not in attributes}
        changed = {name: _changed(getattr(self.windows, name), fields[name]) for name in attributes}
        return replace(self, **own, windows=replace(self.windows, **changed))

    def call(self) -> ContractCall:
        """Make the call, contiguous and without null pointers."""
        signature = SIGNATURES[self.api]
        call = ContractCall(
            api=self.api,
            tensors=dict.fromkeys(signature.tensors, TensorArgument.contiguous(self.shape, self.dtype, self.tag)),
            lists={_LISTS[name]: getattr(self.windows, name) for name in _LISTS if _LISTS[name] in signature.lists},
            ceil_mode=self.windows.rounds_up if signature.flags else None,
        )
        pooled = self._pooled_shape(call)
        indices = mask_shape(call) if self.api in MASK_APIS else pooled
        return call.with_tensors(
            {
                signature.pooled: TensorArgument.contiguous(pooled, self.dtype, self.tag),
                signature.indices: TensorArgument.contiguous(indices, self.index_dtype, self.tag),
            }
        )

    def _pooled_shape(self, call: ContractCall) -> Shape:
        match self.windows:
            case Windowed():
                return pooled_shape(call)
            case Adaptive(output_size):
                if call.signature.lists:
                    return adaptive_shape(call)
                return axes(self.shape, call.signature.spatial_rank).joined(output_size)
            case other:
                assert_never(other)


@cache
def violating_call(product: Product, clause_id: str) -> ContractCall:
    """Make a call that breaks this clause on this product and no earlier one, at the clause's boundary.

    For an early success, the call takes it. For an unsupported product, the call is legal elsewhere.
    """
    clause = _clause_on(product, clause_id)
    return _broken(base_template(clause.api), clause.breach_on(product))


def violating_pair(product: Product, first: str, second: str) -> ContractCall | None:
    """Make a call that breaks two clauses of one API, so that the first must answer.

    Return None if both breaches touch the same argument, or if one undoes or hides the other.
    """
    clause, other = _clause_on(product, first), _clause_on(product, second)
    order = list(contract_of(clause.api).by_id)
    if clause.api != other.api or order.index(first) >= order.index(second):
        raise ContractError(f"{first!r} is not checked before {second!r}")
    breaches = clause.breach_on(product), other.breach_on(product)
    if clause.status is None or other.status is None or _touched(breaches[0]) & _touched(breaches[1]):
        return None
    call = _broken(base_template(clause.api), *breaches)
    single_breaches = violating_call(product, first), violating_call(product, second)
    is_hidden = NOTHING_TO_BREAK not in breaches and call in single_breaches
    return call if not is_hidden and expectations(product, call).code.clause == first else None


def legal_calls(product: Product, api: str) -> dict[str, ContractCall]:
    """List calls at the edge of what is legal, by the name of the edge; none if the product refuses the API.

    They are legal by the library's code; a page may promise less (see `expectations`). Calls with a huge plane are too
    large to allocate.
    """
    if product not in supporting_products(api):
        return {}
    base = base_template(api)
    reached = {name: _NAMED[name] for name, reach in _OWN[api].items() if reach is None or product.value_in(reach)}
    edges = {**_COMMON, **_EDGES[SIGNATURES[api].operator.windows], **reached}
    calls = {name: base.changed(edge).call() for name, edge in edges.items()}
    return calls | {name: _viewed(base.call(), view) for name, view in _VIEWS.items()}


def supporting_products(api: str) -> Products:
    """List the products that support an API: neither code nor page refuses it outright."""
    contract = contract_of(api)
    refusing = [clause.products for clause in contract.clauses if clause.name.startswith("product")]
    return tuple(product for product in contract.products if not any(product in products for products in refusing))


def base_template(api: str) -> Template:
    return Template(api=api, **_BASES[api])


_PLANAR = {"shape": (2, 3, 6, 7), "tag": "NCHW"}
_VOLUME = {"shape": (2, 3, 5, 6, 7), "tag": "ND"}
_PLANAR_WINDOW = {"windows": Windowed((3, 2), (2, 2), (1, 0), (1, 1))}
_VOLUME_WINDOW = {"windows": Windowed((2, 3, 2), (2, 2, 2), (1, 1, 0), (1, 1, 1))}

_BASES: dict[str, dict[str, Any]] = {
    "aclnnMaxPool3dWithArgmaxBackward": {**_VOLUME, **_VOLUME_WINDOW},
    "aclnnMaxPool2dWithIndicesBackward": {**_PLANAR, **_PLANAR_WINDOW},
    "aclnnMaxPool2dWithMaskBackward": {**_PLANAR, **_PLANAR_WINDOW, "index_dtype": "INT8"},
    "aclnnAdaptiveMaxPool2dBackward": {**_PLANAR, "windows": Adaptive((4, 3))},
    "aclnnAdaptiveMaxPool3dBackward": {**_VOLUME, "windows": Adaptive((2, 4, 3))},
    "aclnnMaxPool3dWithArgmax": {**_VOLUME, **_VOLUME_WINDOW},
    "aclnnMaxPool2dWithIndices": {**_PLANAR, **_PLANAR_WINDOW},
    "aclnnMaxPool2dWithMask": {**_PLANAR, **_PLANAR_WINDOW, "index_dtype": "INT8"},
    "aclnnAdaptiveMaxPool2d": {**_PLANAR, "windows": Adaptive((4, 3)), "index_dtype": "INT64"},
    "aclnnAdaptiveMaxPool3d": {**_VOLUME, "tag": "NCDHW", "windows": Adaptive((2, 4, 3))},
}

_LISTS = {
    argument.ours: argument.name
    for signature in SIGNATURES.values()
    for argument in signature.arguments
    if argument.role is Role.LIST
}
"""The library's names of the attributes that are lists."""


def _everywhere(value: int) -> Callable[[Shape], Shape]:
    return lambda values: (value,) * len(values)


def _spatially(value: int) -> Callable[[Shape], Shape]:
    return lambda shape: (*shape[:2], *(value,) * (len(shape) - 2))


def _flat(cells: int) -> Callable[[Shape], Shape]:
    """Make a single row of ``cells`` cells."""
    return lambda shape: (*(1,) * (len(shape) - 1), cells)


Variants = Mapping[str, Mapping[str, Any]]
"""Name of an edge of what is legal -> its changes of the base."""

_COMMON: Variants = {
    "base": {},
    "N is 0": {"shape": lambda shape: (0, *shape[1:])},
    "plane of 2^31 - 1 cells": {"shape": _flat(2**31 - 1)},
}

_ONE_CELL = {"kernel_size": _everywhere(1), "padding": _everywhere(0)}
_DROPPED = {"kernel_size": _everywhere(2), "stride": _everywhere(3), "padding": _everywhere(1), "ceil_mode": True}

_WINDOWED: Variants = {
    "padding is half of an odd kernel": {"kernel_size": _everywhere(5), "padding": _everywhere(2)},
    "padding is half of an even kernel": {"kernel_size": _everywhere(4), "padding": _everywhere(2)},
    "kernel is the padded input": {"shape": _spatially(3), "kernel_size": _everywhere(5), "padding": _everywhere(1)},
    "ceil mode drops the window that starts in the padding": {"shape": _spatially(4), **_DROPPED},
    "ceil mode keeps a partial window": {"shape": _spatially(6), "padding": _everywhere(0), "ceil_mode": True},
    "stride list is empty": {"stride": ()},
    "lists of one value": {"kernel_size": (3,), "stride": (2,), "padding": (1,), "dilation": (1,)},
    "kernel of one cell": _ONE_CELL,
    "kernel of one cell, stride 1": {**_ONE_CELL, "stride": _everywhere(1)},
}

_ADAPTIVE: Variants = {
    "one window": {"output_size": _everywhere(1)},
    "more windows than cells": {"output_size": _everywhere(9)},
}

_EDGES = per_kind("legal calls at their edges", {Windowed: _WINDOWED, Adaptive: _ADAPTIVE})

_NAMED: Variants = {
    "dilation 2": {"dilation": _everywhere(2)},
    "plane of 2^31 cells": {"shape": _flat(2**31)},
    "plane of 2^31 cells, INT64 indices": {"shape": _flat(2**31), "index_dtype": "INT64"},
    "no C": {"shape": lambda shape: (shape[0], 0, *shape[2:])},
    "no windows": {"output_size": lambda sizes: (*sizes[:-2], 0, sizes[-1])},
    **{f"tag {tag}": {"tag": tag} for tag in ("ND", "NHWC", "NCDHW", "NDHWC")},
    **{f"unbatched, tag {tag}": {"shape": unbatched, "tag": tag} for tag in ("ND", "NCL", "NCHW")},
    "tag NHWC, windows alike": {"tag": "NHWC", "output_size": (3, 2)},
    **{dtype: {"dtype": dtype} for dtype in ("FLOAT16", "BF16", "DOUBLE")},
    "INT64 indices": {"index_dtype": "INT64"},
    "outputSize of one value": {"output_size": (3,)},
    "outputSize is empty": {"output_size": ()},
}
"""Edges of some APIs."""

_EXCEPT_950: Reach = {"A2": True, "950": False, "910": True, "310P": True, "310B": True}
_A2_AND_910: Reach = {"A2": True, "950": False, "910": True, "310P": False, "310B": False}

_OWN: dict[str, dict[str, Reach | None]] = {
    "aclnnMaxPool3dWithArgmaxBackward": {
        "dilation 2": None,
        "plane of 2^31 cells": ONLY_950,
        **dict.fromkeys(("no C", "tag NCDHW", "unbatched, tag ND", "unbatched, tag NCHW", "FLOAT16", "BF16"), None),
        "INT64 indices": ONLY_950,
    },
    "aclnnMaxPool2dWithIndicesBackward": {
        **dict.fromkeys(("dilation 2", "plane of 2^31 cells"), ONLY_950),
        "tag ND": None,
        "tag NHWC": ONLY_950,
        **dict.fromkeys(("unbatched, tag ND", "unbatched, tag NCL"), None),
        **dict.fromkeys(("FLOAT16", "BF16", "INT64 indices"), ONLY_950),
    },
    "aclnnMaxPool2dWithMaskBackward": {
        "tag ND": PRE_950,
        **dict.fromkeys(("unbatched, tag ND", "unbatched, tag NCL", "FLOAT16"), None),
        "BF16": PRE_950,
    },
    "aclnnAdaptiveMaxPool2dBackward": {
        "plane of 2^31 cells": ONLY_950,
        **dict.fromkeys(("no windows", "tag ND", "unbatched, tag NCL", "FLOAT16", "BF16", "INT64 indices"), None),
    },
    "aclnnAdaptiveMaxPool3dBackward": {
        "plane of 2^31 cells": ONLY_950,
        **dict.fromkeys(
            ("no windows", "tag NCDHW", "unbatched, tag ND", "unbatched, tag NCHW", "FLOAT16", "BF16"), None
        ),
        "INT64 indices": ONLY_950,
    },
    "aclnnMaxPool3dWithArgmax": {
        **dict.fromkeys(("dilation 2", "plane of 2^31 cells"), ONLY_950),
        **dict.fromkeys(("no C", "tag NCDHW"), None),
        "tag NDHWC": ONLY_950,
        **dict.fromkeys(("unbatched, tag ND", "unbatched, tag NCHW", "FLOAT16", "BF16"), None),
        "INT64 indices": ONLY_950,
    },
    "aclnnMaxPool2dWithIndices": {
        **dict.fromkeys(("dilation 2", "plane of 2^31 cells"), ONLY_950),
        "tag ND": None,
        "tag NHWC": ONLY_950,
        **dict.fromkeys(("unbatched, tag ND", "unbatched, tag NCL", "FLOAT16", "BF16", "INT64 indices"), None),
    },
    "aclnnMaxPool2dWithMask": {
        "tag ND": PRE_950,
        "unbatched, tag ND": None,
        "unbatched, tag NCL": PRE_950,
        "FLOAT16": _A2_AND_910,
        "BF16": PRE_950,
    },
    "aclnnAdaptiveMaxPool2d": {
        "unbatched, tag NCL": None,
        "tag NHWC": _EXCEPT_950,
        "tag NHWC, windows alike": SINCE_A2,
        "FLOAT16": None,
        "BF16": SINCE_A2,
        "DOUBLE": None,
    },
    "aclnnAdaptiveMaxPool3d": {
        **dict.fromkeys(
            ("plane of 2^31 cells, INT64 indices", "outputSize of one value", "outputSize is empty", "tag ND"), ONLY_950
        ),
        **dict.fromkeys(("unbatched, tag NCHW", "FLOAT16", "BF16"), None),
        "INT64 indices": ONLY_950,
    },
}
"""API -> its own edges and where each is legal; None for everywhere."""


require_apis("base of its examples", _BASES)
require_apis("legal calls of its own", _OWN)
for _api, _reaches in _OWN.items():
    for _name, _reach in _reaches.items():
        require_values(supporting_products(_api), _reach or PRE_950, f"of legal calls {_name!r}", _api)


# Views, on which no status depends.


def every_other(tensor: TensorArgument) -> TensorArgument:
    storage = (*tensor.shape[:-1], 2 * tensor.shape[-1])
    strides = (*row_major_strides(storage)[:-1], 2)
    return replace(tensor, strides=strides, storage=storage)


def _one_batch_for_all(tensor: TensorArgument) -> TensorArgument:
    return replace(tensor, strides=(0, *tensor.strides[1:]), storage=(1, *tensor.shape[1:]))


_VIEWS: dict[str, Callable[[TensorArgument], TensorArgument]] = {
    "every other cell of a longer row": every_other,
    "three cells into the storage": lambda tensor: replace(tensor, offset=3, storage=(prod(tensor.shape) + 3,)),
    "one batch for all": _one_batch_for_all,
}


def _viewed(call: ContractCall, view: Callable[[TensorArgument], TensorArgument]) -> ContractCall:
    """Change the layout of all tensors except masks, which are read without their view, and overlapping outputs."""
    contiguous = call.signature.outputs if view is _one_batch_for_all else ()
    if call.api in MASK_APIS:
        contiguous = (*contiguous, "indices")
    return call.with_tensors({name: view(call.tensor(name)) for name in call.tensors if name not in contiguous})


def _broken(base: Template, *breaches: Breach) -> ContractCall:
    for breach in breaches:
        base = base.changed(breach.template)
    return changed(base.call(), tuple(change for breach in breaches for change in breach.changes))


def _changed(old: Any, change: Any) -> Any:
    return change(old) if callable(change) else change


def _touched(breach: Breach) -> set[tuple[str, str]]:
    """List the fields of arguments that a breach changes; a null pointer touches all fields."""
    touched = {(_LISTS[name], "values") if name in _LISTS else ("template", name) for name in breach.template}
    for change in breach.changes:
        fields = ("values", "shape", "view", "dtype", "format") if change.field == "null" else (change.field,)
        touched |= {(change.argument, field) for field in fields}
    return touched


def _clause_on(product: Product, clause_id: str) -> Clause:
    clause = find_clause(clause_id)
    if product not in clause.products:
        held = ", ".join(map(str, clause.products))
        raise ContractError(f"clause {clause_id!r} does not hold on {product.name!r}; it holds on {held}")
    return clause
