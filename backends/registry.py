"""The registry of backends by name: built-in ones, those of installed packages and ``module:attribute``."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points

from poolproof.backends.base import Backend, BackendUnavailable
from poolproof.references.products import PRODUCTS, Product

ENTRY_POINT_GROUP = "poolproof.backends"

KERNELS = "ascendc:"
"""How names of kernels in Ascend C begin; a manifest follows."""

_DEVICES = ("cpu", "cuda", "npu")

_ON_DEVICES = {
    "torch": "poolproof.backends.torch_eager:TorchEager",
    "torch-autograd": "poolproof.backends.frameworks.torch_routes:TorchAutograd",
    "torch-compile": "poolproof.backends.frameworks.torch_routes:TorchCompile",
}
"""Backends that take a device as their argument, after a colon."""

_SHORT = {"torch-autograd": "torch-autograd:cpu", "torch-compile": "torch-compile:cpu"} | {
    f"torch-{device}": f"torch:{device}" for device in _DEVICES
}
"""Names of a backend on one device, as in reports."""

_BUILT_IN = {
    "aclnn": "poolproof.backends.aclnn.backend:Aclnn",
    "jax": "poolproof.backends.frameworks.jax:Jax",
    "onnx": "poolproof.backends.frameworks.onnx:Onnx",
    "onnxruntime": "poolproof.backends.frameworks.onnxruntime:OnnxRuntime",
    "mindspore": "poolproof.backends.frameworks.mindspore:MindSpore",
    "openvino": "poolproof.backends.frameworks.openvino:OpenVino",
    "paddle": "poolproof.backends.frameworks.paddle:Paddle",
    "tensorflow": "poolproof.backends.frameworks.tensorflow:TensorFlow",
    "torch-mkldnn": "poolproof.backends.frameworks.torch_mkldnn:TorchMkldnn",
}

_EMULATED = {f"emulator-{product.name.lower()}": product for product in PRODUCTS.values()}


BUILT_IN = frozenset({*_BUILT_IN, *_SHORT, *_EMULATED})
"""Names of the backends that come with the suite, which no package can take."""


class UnknownBackend(Exception):
    """No backend of that name; the text lists the known ones."""


ATTRIBUTES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "product": (lambda value: value is None or isinstance(value, Product), "a Product or None"),
    "interface": (lambda value: isinstance(value, str), "a text"),
    "survives_fork": (lambda value: isinstance(value, bool), "True or False"),
} | dict.fromkeys(
    ("modes", "variants", "tags", "actions"),
    (lambda value: isinstance(value, tuple) and all(isinstance(text, str) for text in value), "a tuple of texts"),
)
"""Attributes that a backend declares: a check of the value, and its type in words."""


def names() -> list[str]:
    """List every backend that can be named here, whether or not it can run."""
    return sorted({*BUILT_IN, *(point.name for point in _entry_points())})


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
    """Create a fresh backend; `UnknownBackend` or `BackendUnavailable` with one sentence otherwise."""
    made = _factory(name)()
    if not isinstance(made, Backend):
        raise UnknownBackend(f"backend {name!r} is {made!r:.80}, no instance of poolproof.backends.base.Backend")
    for attribute, (can_be, wanted) in ATTRIBUTES.items():
        given = getattr(made, attribute)
        if not can_be(given):
            raise UnknownBackend(f"backend {name!r} has the {attribute} {given!r:.80}: it must be {wanted}")
    return made


def prepare(name: str, tell: Callable[[str], object], dtype: str = "") -> None:
    """Build what a backend needs once, and ``tell`` what takes long; `BackendUnavailable` if that fails.

    What only calls of a dtype need is built where that is named. What is not prepared is built in silence, by whoever
    creates the backend or makes a call.
    """
    if name.startswith(KERNELS):
        from poolproof.backends.ascendc.backend import prepare_kernel

        prepare_kernel(name, tell, dtype)
    if name in _EMULATED:
        from poolproof.backends.emulator import library

        library(tell=tell)


def is_installed(name: str) -> bool:
    """Tell whether a name stands for what is here already: no module that is found by it, and no file."""
    family, colon, device = name.partition(":")
    return (family in _ON_DEVICES and device in _DEVICES) if colon else name in names()


def check_name(name: str) -> None:
    """Raise `UnknownBackend` unless ``name`` can be created in principle; imports nothing heavy."""
    family, colon, device = name.partition(":")
    if not name.isprintable():
        raise UnknownBackend(f"backend {name!r}: a name holds characters that are printed, and no others")
    if name.startswith(KERNELS):
        return
    if colon and family in _ON_DEVICES:
        if device not in _DEVICES:
            raise UnknownBackend(f"backend {name!r}: {family} runs on {', '.join(_DEVICES)}, such as {family}:cuda")
    elif not colon and name not in BUILT_IN and name not in names():  # those of all packages are read last
        raise UnknownBackend(
            f"unknown backend {name!r}: choose from {', '.join(names())}, torch:DEVICE, "
            f"or name your own as module:attribute, or a kernel in Ascend C by its manifest, as {KERNELS}KERNEL.toml"
        )


def _factory(name: str) -> Callable[[], Backend]:
    check_name(name)
    if name.startswith(KERNELS):
        from poolproof.backends.ascendc.backend import AscendC

        return partial(AscendC, name)
    if name in _EMULATED:
        from poolproof.backends.emulator.backend import Emulated

        return partial(Emulated, _EMULATED[name])
    points = () if name in BUILT_IN else [point for point in _entry_points() if point.name == name]
    try:
        for point in points:
            return _load(point)
        family, _, device = _SHORT.get(name, name).partition(":")
        on_device = family in _ON_DEVICES
        module, _, attribute = (_ON_DEVICES[family] if on_device else _BUILT_IN.get(name, name)).partition(":")
        factory = getattr(importlib.import_module(module), attribute)
        return partial(factory, device) if on_device else factory
    except (ImportError, AttributeError) as error:
        if name in _BUILT_IN:
            raise BackendUnavailable(f"{name} cannot be imported ({error}): pip install 'poolproof[{name}]'") from error
        raise UnknownBackend(f"backend {name!r} cannot be loaded: {error}") from error


def _load(point: EntryPoint) -> Callable[[], Backend]:
    """Load the backend of an installed package; `UnknownBackend` names the package if that fails."""
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
