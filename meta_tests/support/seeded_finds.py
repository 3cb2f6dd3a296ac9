"""What `seeded_finds.toml` says, and explains, of where the gate of the score finds seeded defects."""

import tomllib

from places import GOLDEN

_SAID = tomllib.loads((GOLDEN / "seeded_finds.toml").read_text(encoding="utf-8"))

LATE, RACING = set(_SAID["late"]), set(_SAID["racing"])

OF_VARIED_CALLS: dict[str, dict[str, list[str]]] = _SAID["of_varied_calls"]

FOUND_AMONG: dict[tuple[str, str], list[str]] = {
    (aspect, operator): found
    for aspect, operators in _SAID["found_among"].items()
    for operator, found in operators.items()
}
