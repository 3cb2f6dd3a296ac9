"""The vendor's products: what distinguishes them, and which one resembles which.

A product inherits values from an earlier one (`Product.like`). A new product is one row here, and the values in which
it differs. Tables beside the clauses hold the contract's values by product; `Product.value_in` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel

Value = TypeVar("Value")

AS_LIKE: Any = object()
"""In place of a value: take that of ``like``."""


@dataclass(frozen=True)
class Product:
    """One family of devices; raises ValueError if a value is missing and there is no ``like``.

    Attributes:
        like: The product that supplies missing values, here and in tables.
        soc_prefixes: Prefixes of its chips' names (``aclrtGetSocName``).
        tags: Further format tags of operators with channels last on their pages.
        adds_natively: Operators that add float16 and bfloat16 in the dtype itself, not in float32 (the library's
            kernels).
        seen_by_kernels: __CCE_AICORE__, vector cores and bytes of UB (the library's tests of tilings); None if no
            kernel sources are judged.
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
        """The product itself, then its ``like``, then that one's, and so on."""
        return (self,) if self.like is None else (self, *self.like.lineage)

    def has_value_in(self, table: Mapping[str, Any]) -> bool:
        return any(product.name in table for product in self.lineage)

    def value_in(self, table: Mapping[str, Value]) -> Value:
        """Look up a table by product name: the product's own value, else its nearest relative's, else KeyError."""
        for product in self.lineage:
            if product.name in table:
                return table[product.name]
        raise KeyError(f"product {self.name!r} has no value among those of {', '.join(table)}")

    def accumulation(self, operator: str, dtype: str) -> AccumulationModel:
        """Return how an operator adds the gradients of one cell, in that dtype."""
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
"""A3 has the contracts and kernels of A2. 910, 310P and 310B refuse most of the family, each in its own way. Chips'
names are those of torch_npu's list (``NpuVariables.cpp``)."""

PRODUCTS = {product.name: product for product in _FAMILY}


def product_of(soc_name: str) -> Product | None:
    """Find the product of a chip; None if it is unknown. The longest prefix wins: "Ascend910B1" is an A2, not a 910."""
    owners = {prefix: product for product in PRODUCTS.values() for prefix in product.soc_prefixes}
    prefix = max((prefix for prefix in owners if soc_name.startswith(prefix)), key=len, default=None)
    return None if prefix is None else owners[prefix]
