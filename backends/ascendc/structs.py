"""Structs of tiling data from headers, defined by tiling macros or as plain structs."""

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
"""Field types with other names in numpy, after removing ``_t``."""


class TilingStructs:
    """The structs of headers, in order: type, name and length of each field; the length is 0 if it is no array."""

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
        """Write the structs that macros define as plain structs, for kernels."""
        if not self.are_macros:
            return ""
        lines = []
        for struct, fields in self.fields.items():
            lines += [f"struct {struct} {{", *(f"    {k} {n}{f'[{c}]' if c else ''};" for k, n, c in fields), "};"]
        return "\n".join(lines)

    def dtype(self, name: str) -> np.dtype:
        """Return the layout of a struct; raise KeyError for an unknown struct or type."""
        parts: list[Any] = []
        for kind, field, count in self.fields[name]:
            plain = kind.removeprefix("std::").removesuffix("_t")
            dtype = self.dtype(kind) if kind in self.fields else np.dtype(_TYPES.get(kind, plain))
            parts.append((field, dtype, (count,) if count else ()))
        return np.dtype(parts, align=True)

    def pack(self, name: str, values: Mapping[str, Any]) -> bytes:
        """Pack the fields of a struct; raise ValueError if one is missing or unknown."""
        record = np.zeros((), self.dtype(name))
        names = record.dtype.names or ()
        if wrong := sorted({*values} ^ {*names}):
            problem = "is missing from the tiling of" if wrong[0] in names else "is no field (one a line is read) of"
            raise ValueError(f"{wrong[0]} {problem} {name}")
        for field, value in values.items():
            record[field] = value
        return record.tobytes()
