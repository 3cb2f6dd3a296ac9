"""Structs of tiling data, as headers define them: by the macros of tiling definitions, or as plain structs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONSTANT = re.compile(r"\bconst(?:expr)?\s+\w+\s+(\w+)\s*=\s*(\d+)")
_MACROS = re.compile(r"BEGIN_TILING_DATA_DEF\((\w+)\)(.*?)END_TILING_DATA_DEF", re.DOTALL)
_MACRO = re.compile(r"TILING_DATA_FIELD_DEF(?:_STRUCT|_ARR)?\(\s*([\w:]+)\s*,(?:\s*(\w+)\s*,)?\s*(\w+)\s*\)")
_STRUCTS = re.compile(r"struct\s+(\w+)\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*;")
_FIELD = re.compile(r"(?:^|(?<=;))\s*([\w:]+)\s+()(\w+)\s*(?:\[\s*(\w+)\s*\])?\s*(?:=[^;]*|\{[^;]*\})?;", re.MULTILINE)

_TYPES = {"float": "float32", "double": "float64", "bool": "bool", "int": "int32", "size_t": "uint64"}
"""Types of fields that are not called as numpy calls them, but for ``_t``."""


class TilingStructs:
    """The structs of headers, in their order: the type, name and number of each field, 0 where it is no array."""

    def __init__(self, paths: Iterable[Path]) -> None:
        text = _COMMENT.sub("", "\n".join(path.read_text(encoding="utf-8") for path in paths))
        constants = dict(_CONSTANT.findall(text))
        self.are_macros = "BEGIN_TILING_DATA_DEF" in text
        structs, field = (_MACROS, _MACRO) if self.are_macros else (_STRUCTS, _FIELD)
        self.fields = {
            name: [
                (kind, field_name, int(constants.get(count, count or 0)))
                for kind, before, field_name, *after in field.findall(body)
                for count in [before or "".join(after)]
            ]
            for name, body in structs.findall(text)
        }

    def declarations(self) -> str:
        """Write as plain structs, which kernels read, what macros define."""
        if not self.are_macros:
            return ""
        lines = []
        for struct, fields in self.fields.items():
            lines += [f"struct {struct} {{", *(f"    {k} {n}{f'[{c}]' if c else ''};" for k, n, c in fields), "};"]
        return "\n".join(lines)

    def dtype(self, name: str) -> np.dtype:
        """Return the layout of a struct; KeyError where there is none of that name, or of a type in it."""
        parts: list[Any] = []
        for kind, field, count in self.fields[name]:
            plain = kind.removeprefix("std::").removesuffix("_t")
            dtype = self.dtype(kind) if kind in self.fields else np.dtype(_TYPES.get(kind, plain))
            parts.append((field, dtype, (count,) if count else ()))
        return np.dtype(parts, align=True)

    def pack(self, name: str, values: Mapping[str, Any]) -> bytes:
        """Pack the fields of a struct; ValueError where one is missing or unknown."""
        record = np.zeros((), self.dtype(name))
        names = record.dtype.names or ()
        if wrong := sorted({*values} ^ {*names}):
            said = "is missing from the tiling of" if wrong[0] in names else "is no field (one a line is read) of"
            raise ValueError(f"{wrong[0]} {said} {name}")
        for field, value in values.items():
            record[field] = value
        return record.tobytes()
