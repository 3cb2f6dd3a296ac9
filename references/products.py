"""The vendor's products: what tells them apart, and which one is like which.

A product takes what it has in common with an earlier one from there (`Product.like`), so that a new product is one row
here and the values in which it differs. Values that the contract needs by product are in tables beside the clauses,
which are read through `Product.value_in`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel

Value = TypeVar("Value")

AS_LIKE: Any = object()
"""In place of a value: that of the product that this one is like."""


@dataclass(frozen=True)
class Product:
    """One family of devices. ValueError where a value is missing and there is no product to take it from.

    like
        The product whose values hold where this one has none of its own, here or in a table.
    soc_prefixes
        Prefixes of its chips' names (``aclrtGetSocName``).
    tags
        Format tags, besides the usual one, under which operators take their tensors if their pages list channels last.
    adds_natively
        Operators that add float16 and bfloat16 in the dtype itself, not in float32 (the library's kernels).
    seen_by_kernels
        What kernels see of it: __CCE_AICORE__, vector cores and bytes of UB (the library's tests of tilings); None
        where no kernel sources are judged.
    """

    name: str
    like: Product | None = None
    soc_prefixes: tuple[str, ...] = ()
    tags: tuple[str, ...] = AS_LIKE
    adds_natively: tuple[str, ...] = AS_LIKE
    seen_by_kernels: tuple[int, int, int] | None = AS_LIKE

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self) if getattr(self, field.name) is AS_LIKE):
            if self.like is None:
                raise ValueError(
                    f"product {self.name!r} has no {name}: give it some, or name a product that it is like"
                )
            object.__setattr__(self, name, getattr(self.like, name))

    def __str__(self) -> str:
        return self.name

    @property
    def lineage(self) -> tuple[Product, ...]:
        """The product itself, the one that it is like, the one that that one is like, and so on."""
        return (self,) if self.like is None else (self, *self.like.lineage)

    def has_value_in(self, table: Mapping[str, Any]) -> bool:
        return any(product.name in table for product in self.lineage)

    def value_in(self, table: Mapping[str, Value]) -> Value:
        """Look up a table by names: the product's own value, or that of the nearest that it is like; else KeyError."""
        for product in self.lineage:
            if product.name in table:
                return table[product.name]
        raise KeyError(f"product {self.name!r} has no value among those of {', '.join(table)}")

    def accumulation(self, operator: str, dtype: str) -> AccumulationModel:
        """Return how an operator adds the gradients that meet in one cell, in that dtype."""
        return NATIVE if operator in self.adds_natively and dtype != "float32" else ACC32


_ADAPTIVE = ("AdaptiveMaxPool2dBackward", "AdaptiveMaxPool3dBackward")

_A2 = Product("A2", soc_prefixes=("Ascend910B",), tags=(), adds_natively=(), seen_by_kernels=(220, 48, 196_608))
_ASCEND_950 = Product("950", None, ("Ascend950",), ("NHWC",), _ADAPTIVE, (310, 64, 245_760))

_FAMILY = (
    _A2,
    Product("A3", like=_A2, soc_prefixes=("Ascend910_93",)),
    _ASCEND_950,
    Product("910", None, ("Ascend910",), tags=(), adds_natively=(), seen_by_kernels=None),
    Product("310P", None, ("Ascend310P",), tags=(), adds_natively=(), seen_by_kernels=None),
    Product("310B", None, ("Ascend310B",), tags=(), adds_natively=(), seen_by_kernels=None),
)
"""Atlas A2 and A3, whose contracts and kernels are the same; Ascend 950; and the older 910, 310P and 310B, which refuse
most of the family, each in its own way. Chips' names: torch_npu's list (``NpuVariables.cpp``)."""

PRODUCTS = {product.name: product for product in _FAMILY}


def product_of(soc_name: str) -> Product | None:
    """Find the product of a chip, None if it belongs to none that is known: "Ascend910B1" is an A2 and no 910."""
    owners = {prefix: product for product in PRODUCTS.values() for prefix in product.soc_prefixes}
    prefix = max((prefix for prefix in owners if soc_name.startswith(prefix)), key=len, default=None)
    return None if prefix is None else owners[prefix]
