"""Manifests: which kernel to judge, where its sources are, how to call it, and where its tiling comes from."""

from __future__ import annotations

import glob
import hashlib
import os
from pathlib import Path
from typing import Literal

import msgspec

from poolproof.backends.abilities import Abilities
from poolproof.backends.base import SOURCES_VARIABLE, BackendUnavailable, UnknownBackend
from poolproof.references.accumulation import AccumulationModel
from poolproof.references.forward_rule import FAMILY_RULE, ForwardRule
from poolproof.references.operators import find_operator
from poolproof.references.products import PRODUCTS

_BUILT_IN = {"ops-nn": Path(__file__).with_name("ops_nn")}
"""Library -> folder of poolproof's own manifests."""

Assumption = Literal[
    "vector_pipe_in_order",
    "scalar_wait_holds_issue",
    "registers_keep_order",
    "infinities_saturate",
    "integers_saturate",
    "maximum_is_ieee",
]
"""Assumptions of the model where no document decides; model/watch.cpp has the table."""

Tensor = Literal["grad_output", "self", "indices", "grad_input", "out", "workspace", "tiling"]


class TilingSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where tilings come from: exactly one of ``python``, ``cases``, ``host`` and ``cann``.

    Attributes:
        struct: The struct that the kernel reads, as HEADERS:NAME, or the HEADERS of several structs.
        operator: The type that ``host`` registers.
        attributes: Names in the operator's definition, in its order.
        include: Folders of the headers of ``host``.
    """

    python: str = ""
    cases: str = ""
    host: tuple[str, ...] = ()
    cann: str = ""
    struct: str = ""
    operator: str = ""
    attributes: tuple[str, ...] = ()
    include: tuple[str, ...] = ()


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel on one product, with the fields of docs/how-to/kernels.md."""

    product: str
    sources: tuple[str, ...]
    entry: str
    operators: tuple[str, ...]
    dtypes: tuple[Literal["float32", "float16", "bfloat16"], ...]
    arguments: dict[str, Tensor]
    tiling: TilingSource
    index_dtypes: tuple[Literal["int32", "int64"], ...] = ("int32",)
    depth: bool = False
    include: tuple[str, ...] = ()
    links: dict[str, str] = {}
    branches: dict[str, str] = {}
    tags: tuple[Literal["NHWC"], ...] = ()
    blocks: int | None = None
    ub_bytes: int | None = None
    architecture: Literal[220, 310] | None = None
    auto_sync: bool = True
    assume: dict[Assumption, bool] = {}
    accumulation: str = ""
    forward_rule: str = ""
    deterministic: Literal["always", "asked", "never"] = "asked"
    without: tuple[str, ...] = ()


class Kernel:
    """A manifest, and the folder of its relative paths; `BackendUnavailable` says what is wrong.

    ``given`` names the manifest: LIBRARY/KERNEL of poolproof's own, or the path of a file KERNEL.toml.
    """

    def __init__(self, given: str) -> None:
        self.path, self.root = _find(given)
        try:
            self.manifest = manifest = msgspec.toml.decode(self.path.read_bytes(), type=Manifest)
            self.operators = frozenset(find_operator(name).name for name in manifest.operators)
            self.abilities = Abilities.from_record(dict.fromkeys(manifest.without, False))
            self.accumulation = AccumulationModel.parse(manifest.accumulation) if manifest.accumulation else None
            self.forward_rule = ForwardRule.parse(manifest.forward_rule) if manifest.forward_rule else FAMILY_RULE
            if sum(map(bool, (tiling := manifest.tiling, tiling.python, tiling.cases, tiling.host, tiling.cann))) != 2:
                raise ValueError("[tiling] needs exactly one of python, cases, host and cann")
            seen = PRODUCTS[manifest.product].seen_by_kernels if manifest.product in PRODUCTS else None
            if seen is None:
                known = ", ".join(name for name, product in PRODUCTS.items() if product.seen_by_kernels)
                raise ValueError(f"product is {manifest.product!r}, not one of {known}")
        except (msgspec.MsgspecError, ValueError, KeyError, OSError) as error:
            raise self.unavailable(f"no manifest of a kernel: {error.args[0]}") from None
        own = (manifest.architecture, manifest.blocks, manifest.ub_bytes)
        self.architecture, self.blocks, self.ub_bytes = (
            usual if value is None else value for value, usual in zip(own, seen)
        )
        self.arguments: dict[str, str] = {**manifest.arguments}
        if "tiling" not in self.arguments.values():
            self.arguments |= {"workspace": "workspace", "tiling": "tiling"}

    def unavailable(self, what: str) -> BackendUnavailable:
        return BackendUnavailable(f"{self.path}: {what}")

    def files(self, *patterns: str) -> list[Path]:
        """Return files or folders below the root; raise `BackendUnavailable` if a pattern matches none."""
        root = Path(glob.escape(str(self.root)))
        found = {
            pattern: sorted(map(Path, glob.glob(str(root / pattern))))  # noqa: PTH207, which takes no absolute pattern
            for pattern in patterns
        }
        for pattern in (pattern for pattern, paths in found.items() if not paths):
            hint = ", which has to be a checkout of the library" if self.path.parent != self.root else ""
            raise self.unavailable(f"there is no {pattern} in {self.root}{hint}")
        return [path for paths in found.values() for path in paths]

    def digest(self) -> str:
        """Hash the manifest and the files in the folders of its sources and headers."""
        folders = {path.parent for path in self.files(*self.manifest.sources, *self.manifest.tiling.host)}
        folders |= {*self.files(*self.manifest.include, *self.manifest.links.values())}
        digest = hashlib.sha256(self.path.read_bytes())
        for path in sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in _SOURCES):
            digest.update(f"{path.relative_to(self.root)}\0".encode() + path.read_bytes())
        return f"sha256:{digest.hexdigest()}"


_SOURCES = {".h", ".cpp", ".py", ".json"}


def _find(given: str) -> tuple[Path, Path]:
    """Return the path of a manifest, and the folder of its relative paths."""
    sources = os.environ.get(SOURCES_VARIABLE, "")
    library, _, kernel = given.partition("/")
    if library not in _BUILT_IN or given.endswith(".toml"):
        path = Path(sources, given).absolute()
        if not path.is_file():
            raise BackendUnavailable(f"there is no manifest {path}: name one, as ascendc:KERNEL.toml")
        return path, path.parent
    path = _BUILT_IN[library] / f"{kernel}.toml"
    if not path.exists():
        known = ", ".join(sorted(f"{library}/{path.stem}" for path in _BUILT_IN[library].glob("*.toml")))
        raise UnknownBackend(f"there is no kernel {given}: choose from {known}, or name a manifest, KERNEL.toml")
    if not sources:
        raise BackendUnavailable(f"backend ascendc:{given} needs a checkout of {library}: name its folder by --sources")
    return path, Path(sources).absolute()
