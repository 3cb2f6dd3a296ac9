"""The shared objects of an aclnn call: where they are, and their symbols.

The search order is torch_npu's: libraries that the user names, custom operators, installed vendors' packages, then CANN
itself, split libraries before the monolithic one. One process never loads both generations of CANN's own operator
library.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poolproof.backends.aclnn.prototypes import FUNCTIONS, OPTIONAL_FUNCTIONS, Prototype, operator_prototypes
from poolproof.backends.base import BackendUnavailable
from poolproof.references.operators import Operator

LIBRARY_VARIABLE = "POOLPROOF_ACLNN_LIBRARY"
"""Files and folders of ``--aclnn-library``, separated like PATH; they take precedence over every installation."""

_RUNTIME_NAMES = ("libascendcl.so", "libacl_rt.so")
_BASE_NAME = "libnnopbase.so"
_SPLIT_NAMES = ("libopapi_math.so", "libopapi_nn.so")
_MONOLITHIC_NAME = "libopapi.so"
_CUSTOM_NAME = "libcust_opapi.so"


@dataclass(frozen=True)
class AclnnLibraries:
    """Loaded libraries, searched in order."""

    paths: tuple[Path, ...]
    handles: tuple[ctypes.CDLL, ...]

    def find(self, name: str, prototype: Prototype) -> Any | None:
        """Return the first library's symbol of that name with its C types; None if there is none."""
        for handle in self.handles:
            function = getattr(handle, name, None)
            if function is not None:
                function.restype, function.argtypes = prototype
                return function
        return None

    def runtime(self) -> dict[str, Any]:
        """Return the functions of AscendCL and the aclnn base, with the optional ones that exist.

        `BackendUnavailable` names a required one that is missing.
        """
        functions = {name: self.find(name, prototype) for name, prototype in (FUNCTIONS | OPTIONAL_FUNCTIONS).items()}
        missing = [name for name, function in functions.items() if function is None and name not in OPTIONAL_FUNCTIONS]
        if missing:
            places = ", ".join(map(str, self.paths))
            raise BackendUnavailable(f"symbol {missing[0]} is missing: none of {places} exports it")
        return {name: function for name, function in functions.items() if function is not None}

    def operator(self, operator: Operator) -> tuple[Any, Any] | None:
        """Return (phase one, phase two) of an operator; None if the libraries do not have it."""
        first, second = (self.find(name, prototype) for name, prototype in operator_prototypes(operator).items())
        return None if first is None or second is None else (first, second)


def load(environment: Mapping[str, str] = os.environ) -> AclnnLibraries:
    """Find and load the libraries; `BackendUnavailable` says what is missing and where poolproof searched."""
    try:
        paths = discover(environment)
    except OSError as error:
        raise BackendUnavailable(f"cannot search for libraries: {error.strerror}: {error.filename}") from error
    handles = []
    for path in paths:
        try:
            handles.append(ctypes.CDLL(str(path.absolute()), mode=ctypes.RTLD_GLOBAL))
        except OSError as error:
            raise BackendUnavailable(f"library {path} cannot be loaded: {error}") from error
    return AclnnLibraries(tuple(paths), tuple(handles))


def discover(environment: Mapping[str, str]) -> list[Path]:
    """List the files to load, in order: runtime and base first, then operator libraries by priority."""
    named = [Path(entry) for entry in environment.get(LIBRARY_VARIABLE, "").split(os.pathsep) if entry]
    for path in named:
        if not (path.is_file() or path.is_dir()):
            raise BackendUnavailable(f"--aclnn-library {path}: there is no such file or folder")
    files = [path for path in named if path.is_file()]
    home = environment.get("ASCEND_HOME_PATH")
    folders = [path for path in named if path.is_dir()] + ([Path(home) / "lib64"] if home else [])
    if files and not folders:
        return files  # the named files contain everything
    runtime = _first(folders, _RUNTIME_NAMES)
    if runtime is None and not files:
        sought = f"sought in {', '.join(map(str, folders))}" if folders else "ASCEND_HOME_PATH is not set"
        raise BackendUnavailable(
            f"library {_RUNTIME_NAMES[0]} is missing ({sought}): "
            "source CANN's set_env.sh, or name a folder or file by --aclnn-library"
        )
    own = _operator_libraries(folders)
    beside = [path.parent for path in own[:1]]
    may_contain_base = bool(own) and own[0].name == _MONOLITHIC_NAME  # or load it itself
    base = _first(beside if may_contain_base else [*beside, *folders], (_BASE_NAME,))
    operators = [*_custom_libraries(environment), *own]
    if not operators and not files:
        raise BackendUnavailable(
            f"libraries {_SPLIT_NAMES[1]} and {_MONOLITHIC_NAME} are missing in {', '.join(map(str, folders))}"
        )
    return [*(path for path in (runtime, base) if path), *files, *operators]


def _custom_libraries(environment: Mapping[str, str]) -> list[Path]:
    """List user-built operators, then the vendors' packages in the order of their own configuration."""
    packages = [Path(entry) for entry in environment.get("ASCEND_CUSTOM_OPP_PATH", "").split(os.pathsep) if entry]
    vendors = Path(environment.get("ASCEND_OPP_PATH", "/nonexistent")) / "vendors"
    packages += [vendors / vendor for vendor in _vendor_order(vendors / "config.ini")]
    libraries = (package / "op_api" / "lib" / _CUSTOM_NAME for package in packages)
    return [library for library in libraries if library.is_file()]


def _vendor_order(configuration: Path) -> list[str]:
    """List vendors by priority, from the line ``load_priority=a,b``."""
    if not configuration.is_file():
        return []
    for line in configuration.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "load_priority":
            return [vendor.strip() for vendor in value.split(",") if vendor.strip()]
    return []


def _operator_libraries(folders: Sequence[Path]) -> list[Path]:
    """Return CANN's own operators from the first folder with any: the split libraries, else the monolithic one."""
    for folder in folders:
        split = [folder / name for name in _SPLIT_NAMES if (folder / name).is_file()]
        if folder / _SPLIT_NAMES[1] in split:
            return split
        if (folder / _MONOLITHIC_NAME).is_file():
            return [folder / _MONOLITHIC_NAME]
    return []


def _first(folders: Sequence[Path], names: Sequence[str]) -> Path | None:
    return next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)
