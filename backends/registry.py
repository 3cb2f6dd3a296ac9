"""The registry of backends by name: poolproof's own, those of installed packages, and ``module:attribute``.

Optional parts are named here as texts, never imported. Backends of missing parts are not listed.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from poolproof.backends.base import Backend, BackendUnavailable, UnknownBackend
from poolproof.references.nearest import unknown_name
from poolproof.references.optional import is_installed as is_part_installed
from poolproof.references.products import PRODUCTS, Product

ENTRY_POINT_GROUP = "poolproof.backends"

KERNELS = "ascendc:"
"""Prefix of names of kernels in Ascend C; a manifest follows."""

_FAMILIES = {
    "aclnn": "poolproof.backends.aclnn.backend:Aclnn",
    "ascendc": "poolproof.backends.ascendc.backend:AscendC",
    "emulator": "poolproof.backends.emulator.backend:Emulated",
    "jax": "poolproof.backends.frameworks.jax:Jax",
    "onnx": "poolproof.backends.frameworks.onnx:Onnx",
    "onnxruntime": "poolproof.backends.frameworks.onnxruntime:OnnxRuntime",
    "mindspore": "poolproof.backends.frameworks.mindspore:MindSpore",
    "openvino": "poolproof.backends.frameworks.openvino:OpenVino",
    "paddle": "poolproof.backends.frameworks.paddle:Paddle",
    "tensorflow": "poolproof.backends.frameworks.tensorflow:TensorFlow",
    "torch": "poolproof.backends.torch_npu:on_device",
    "torch-autograd": "poolproof.backends.frameworks.torch_routes:TorchAutograd",
    "torch-compile": "poolproof.backends.frameworks.torch_routes:TorchCompile",
    "torch-mkldnn": "poolproof.backends.frameworks.torch_mkldnn:TorchMkldnn",
}
"""Family -> module:class of poolproof's own backends."""

_PREPARED = {
    "ascendc": "poolproof.backends.ascendc.backend:prepare",
    "emulator": "poolproof.backends.emulator.build:prepare",
}
"""Family -> function of (argument, tell, dtype) that builds what it needs once."""

_DEVICES = ("cpu", "cuda", "npu")

_ARGUMENTS = dict.fromkeys(("torch", "torch-autograd", "torch-compile"), _DEVICES) | {
    "emulator": tuple(name.lower() for name in PRODUCTS)
}
"""Family -> its arguments; a name is FAMILY:ARGUMENT. A kernel's argument is its manifest, so ascendc is not listed."""

_SHORT = (
    {"torch-autograd": "torch-autograd:cpu", "torch-compile": "torch-compile:cpu"}
    | {f"torch-{device}": f"torch:{device}" for device in _DEVICES}
    | {f"emulator-{product}": f"emulator:{product}" for product in _ARGUMENTS["emulator"]}
)
"""Name in reports -> family with its argument."""

BUILT_IN = frozenset({*_SHORT, *_FAMILIES} - {"ascendc", "emulator", "torch"})
"""Names of poolproof's own backends; no package can take them."""


_FLAG = (lambda value: isinstance(value, bool), "True or False")

ATTRIBUTES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "product": (lambda value: value is None or isinstance(value, Product), "a Product or None"),
    "interface": (lambda value: isinstance(value, str), "a text"),
    "survives_fork": _FLAG,
    "opens_late": _FLAG,
} | dict.fromkeys(
    ("modes", "variants", "tags", "actions"),
    (lambda value: isinstance(value, tuple) and all(isinstance(text, str) for text in value), "a tuple of texts"),
)
"""Attribute that a backend declares -> (check of its value, its type in words)."""


def names() -> list[str]:
    """List every backend that can be named here, even if it cannot run."""
    own = (name for name in BUILT_IN if is_part_installed(_FAMILIES[_family_of(name)]))
    return sorted({*own, *(point.name for point in _entry_points())})


def _family_of(name: str) -> str:
    return _SHORT.get(name, name).partition(":")[0]


def canonical(name: str) -> str:
    """Return the name of a backend in reports and waivers: torch-cuda for torch:cuda; other names are unchanged."""
    return next((short for short, whole in _SHORT.items() if whole == name), name)


def python_of(name: str, environment: Mapping[str, str]) -> str | None:
    """Return the interpreter of a backend, if its variable names one: POOLPROOF_TORCH_CPU_PYTHON for torch-cpu."""
    words = re.sub(r"\W", "_", canonical(name)).upper()
    return environment.get(f"POOLPROOF_{words}_PYTHON")


def is_python_variable(variable: str) -> bool:
    return variable.startswith("POOLPROOF_") and variable.endswith("_PYTHON")


def create(name: str) -> Backend:
    """Create a new backend; otherwise raise `UnknownBackend` or `BackendUnavailable` with one sentence."""
    backend = _factory(name)()
    if not isinstance(backend, Backend):
        raise UnknownBackend(f"backend {name!r} is {backend!r:.80}, not an instance of poolproof.backends.base.Backend")
    for attribute, (can_be, wanted) in ATTRIBUTES.items():
        given = getattr(backend, attribute)
        if not can_be(given):
            raise UnknownBackend(f"backend {name!r} has the {attribute} {given!r:.80}: it must be {wanted}")
    return backend


def prepare(name: str, tell: Callable[[str], object], dtype: str = "") -> None:
    """Build what a backend needs once; ``tell`` reports slow work. `BackendUnavailable` if that fails.

    With a ``dtype``, also build what only its calls need. A backend that was not prepared builds silently on first use.
    """
    family, _, argument = _SHORT.get(name, name).partition(":")
    if family in _PREPARED:
        _load(name, _PREPARED[family])(argument, tell, dtype)


def is_installed(name: str) -> bool:
    """Tell whether a name stands for an installed backend, not for a module or a file."""
    family, colon, argument = name.partition(":")
    return argument in _ARGUMENTS.get(family, ()) if colon else name in names()


def check_name(name: str) -> None:
    """Raise `UnknownBackend` if ``name`` cannot be created; import nothing heavy."""
    family, colon, argument = name.partition(":")
    if not name.isprintable():
        raise UnknownBackend(f"backend {name!r}: a name may hold only printable characters")
    if colon and family in _ARGUMENTS:
        if argument not in _ARGUMENTS[family]:
            known = _ARGUMENTS[family]
            raise UnknownBackend(f"backend {name!r}: {family} runs on {', '.join(known)}, such as {family}:{known[1]}")
    elif not colon and name not in BUILT_IN and name not in names():  # names of packages are read last
        raise UnknownBackend(
            f"{unknown_name('backend', name, names())}, torch:DEVICE, "
            f"or name your own as module:attribute, or a kernel in Ascend C by its manifest, as {KERNELS}KERNEL.toml"
        )


def _factory(name: str) -> Callable[[], Backend]:
    check_name(name)
    for point in () if name in BUILT_IN else _entry_points():
        if point.name == name:
            return _of_package(point)
    family, colon, argument = _SHORT.get(name, name).partition(":")
    factory = _load(name, _FAMILIES.get(family, name))
    return partial(factory, argument) if colon and family in _FAMILIES else factory


def _load(name: str, place: str) -> Any:
    """Import the attribute of a ``place`` (module:attribute) for the backend ``name``."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        if name in BUILT_IN:
            raise BackendUnavailable(f"{name} cannot be imported ({error}): pip install 'poolproof[{name}]'") from error
        raise UnknownBackend(f"backend {name!r} cannot be loaded: {error}") from error


def _of_package(point: EntryPoint) -> Callable[[], Backend]:
    """Load the backend of an installed package; if that fails, `UnknownBackend` names the package."""
    try:
        return point.load()
    except Exception as error:
        package = getattr(getattr(point, "dist", None), "name", "unknown")  # Python 3.9 has no EntryPoint.dist
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise UnknownBackend(f"backend {point.name!r} of package {package} cannot be loaded: {why}") from error


def _entry_points() -> Iterable[EntryPoint]:
    if sys.version_info < (3, 10):  # noqa: UP036  (the interpreter of a host)
        return entry_points().get(ENTRY_POINT_GROUP, ())
    return entry_points(group=ENTRY_POINT_GROUP)
