"""What a reader needs to know about the machine and the suite to tell two runs apart."""

from __future__ import annotations

import os
import platform
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("poolproof", "numpy", "ml_dtypes", "hypothesis", "pytest", "pandas", "pyarrow")


@cache
def suite_version() -> str:
    """The installed version of the suite."""
    try:
        return version("poolproof")
    except PackageNotFoundError:
        return "not installed"


def host_environment() -> dict[str, str]:
    """Operating system, CPU, Python and the versions of the packages that can change a result."""
    packages = {}
    for package in _PACKAGES:
        try:
            packages[package] = version(package)
        except PackageNotFoundError:
            packages[package] = "not installed"
    return {
        "system": platform.platform(),
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "python": sys.version.split()[0],
        **packages,
    }


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Hardware")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
