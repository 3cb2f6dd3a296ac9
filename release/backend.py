"""The build backend: setuptools, whose wheels would also hold what an earlier build of the same clone left in `build`.

A module that has since been renamed would be installed, and bundles of the same commit would not verify.
"""

from __future__ import annotations

import shutil
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (the other hooks)


def build_wheel(*arguments: Any, **named: Any) -> str:
    shutil.rmtree("build/lib", ignore_errors=True)
    return build_meta.build_wheel(*arguments, **named)
