"""Which product a chip belongs to."""

from __future__ import annotations

_PREFIXES = (
    ("Ascend910_93", "A3"),
    ("Ascend910B", "A2"),
    ("Ascend950", "950"),
    ("Ascend910", "910"),
    ("Ascend310P", "310P"),
    ("Ascend310B", "310B"),
)
"""Beginnings of ``aclrtGetSocName``, longest first where one begins another (torch_npu's list of chip names)."""


def product_of(soc_name: str) -> str:
    """The product of a chip, or the chip's own name if it belongs to none that is known."""
    return next((product for prefix, product in _PREFIXES if soc_name.startswith(prefix)), soc_name)
