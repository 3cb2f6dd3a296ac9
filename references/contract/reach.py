"""Where a rule holds: tables that say yes or no for every product, each product's own or that of one it is like.

A rule without such a table holds on every product that no earlier rule refuses outright.
"""

from __future__ import annotations

from collections.abc import Mapping

Reach = Mapping[str, bool]

PRE_950: Reach = {"A2": True, "950": False, "910": False, "310P": False, "310B": False}
SINCE_A2: Reach = {"A2": True, "950": True, "910": False, "310P": False, "310B": False}
BEFORE_A2: Reach = {"A2": False, "950": False, "910": True, "310P": True, "310B": True}
ONLY_950: Reach = {"A2": False, "950": True, "910": False, "310P": False, "310B": False}
ONLY_310: Reach = {"A2": False, "950": False, "910": False, "310P": True, "310B": True}
ONLY_310B: Reach = {"A2": False, "950": False, "910": False, "310P": False, "310B": True}

ALWAYS_ON_BLOCKS: Reach = {"A2": False, "950": False, "910": True, "310P": True, "310B": False}
"""The products on which the mask APIs go through NC1HWC0 whatever the kernel's size."""

ASKED_OUTRIGHT = {
    "PRE_950": PRE_950,
    "SINCE_A2": SINCE_A2,
    "ONLY_950": ONLY_950,
    "ALWAYS_ON_BLOCKS": ALWAYS_ON_BLOCKS,
}
"""Tables that predicates look into, by name: every product must be in each of them."""
