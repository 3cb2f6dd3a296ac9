"""The case: everything that determines one call and its data, immutable, and one line of JSON.

The line is the case's identity, its reproducer and the language of failure reports: `Case.to_json` prints it,
``pytest --case`` and ``poolproof replay`` read it back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache, cached_property
from math import prod
from typing import Any, get_type_hints

import msgspec
import numpy as np
from numpy.typing import NDArray

from poolproof.references.formats import FORMATS, FloatFormat
from poolproof.references.geometry import Axis, taps
from poolproof.references.indices import INDEX_DTYPES
from poolproof.references.layouts import AXES, CONTIGUOUS, LAYOUTS, PLANES, Form, MemoryLayout, storage_form
from poolproof.references.operators import BY_NAME, OPERATORS, Operator, find_operator
from poolproof.references.windows import KINDS, SMALLEST, Windows
from poolproof.reports.rows.verdicts import BadInput
from poolproof.suites.cases.recipes.gradients import GRADIENTS
from poolproof.suites.cases.recipes.indices import INDICES
from poolproof.suites.cases.recipes.spreads import SPREADS, parse_spread
from poolproof.suites.cases.recipes.values import VALUES

_INTEGERS = 1 << 63
"""What a row can hold as a seed, or as a number of elements."""

_MAX_SCALE = 2100
"""Powers of two between the smallest and the largest number of the widest format, and some."""


class CaseError(BadInput, ValueError):
    """A case that cannot be: the text says which field is wrong and what it should be."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One call of one operator and the recipe of its data.

    ``operator`` is a name in `poolproof.references.operators`; JSON also takes the aclnn and aten spellings. ``shape``
    is that of ``self``: ``[N,] C`` and the spatial axes. ``attributes`` are the windows, as passed to the API; their
    fields stand beside the others in JSON. ``gradient``, ``indices`` and ``values`` are recipes
    (`poolproof.suites.cases.recipes`) of grad_output, indices and self; all that is random in them derives from
    ``seed``, and a gradient is multiplied by 2**``scale``. ``layouts`` are (tensor, layout) for tensors that are not
    contiguous, ``literals`` (tensor, values in row-major order) for inputs that are spelled out instead of made by a
    recipe, both sorted by tensor. ``deterministic``: the call demands the deterministic mode.
    """

    operator: str
    shape: tuple[int, ...]
    dtype: str = "float32"
    index_dtype: str = "int64"
    attributes: Windows
    gradient: str = "integers"
    indices: str = "forward"
    values: str = "normal"
    scale: int = 0
    layouts: tuple[tuple[str, str], ...] = ()
    deterministic: bool = False
    seed: int = 0
    literals: tuple[tuple[str, tuple[float, ...]], ...] = ()

    def to_json(self) -> str:
        """Write the canonical line of JSON; fields at their default are left out."""
        return self._json

    @cached_property
    def _json(self) -> str:
        return json.dumps(_spelled(self), separators=(",", ":"))

    @classmethod
    def of(cls, operator: str, **fields: Any) -> Case:
        """Make a case of its fields as JSON has them, flat, but already of the right types."""
        return cls(operator=operator, **_with_windows(find_operator(operator), fields))

    @classmethod
    def smallest(cls, operator: Operator, dtype: str = "float32") -> Case:
        """Make the case of one window over one small plane."""
        rank = operator.spatial_rank
        shape, windows = (1, *(SMALLEST,) * rank), operator.windows.smallest(rank)
        return cls(operator=operator.name, shape=shape, dtype=dtype, attributes=windows)

    @classmethod
    def from_json(cls, text: str) -> Case:
        """Read one JSON object; `CaseError` says what is wrong with it."""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise CaseError(f"a case is one JSON object, and this is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise CaseError(f"a case is one JSON object, not {type(record).__name__}")
        return cls.from_record(record)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Case:
        """Read a mapping of field names to JSON values; `CaseError` says what is wrong with it."""
        return cls.read(record).checked()

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Case:
        """Read a mapping of the right types, whatever its values are; `CaseError` says what is wrong with it."""
        if "operator" not in record:
            raise CaseError("a case needs the field 'operator'")
        try:
            api = find_operator(str(record["operator"]))
        except KeyError as error:
            raise CaseError(error.args[0]) from error
        kind = _record_type(api.windows)
        unknown = sorted(set(record) - set(kind.__struct_fields__))
        if unknown:
            known = ", ".join(kind.__struct_fields__)
            raise CaseError(f"a case of {api.name} has no field {unknown[0]!r}; it has {known}")
        try:
            read = msgspec.structs.asdict(msgspec.convert(record, kind)) | {"operator": api.name}
            spreads = {name: parse_spread(read[name]) for name in ("gradient", "values")}
            layouts = {tensor: str(MemoryLayout.parse(layout)) for tensor, layout in dict(read["layouts"]).items()}
        except ValueError as error:
            raise CaseError(f"a case of {api.name}: {error}") from error
        read |= {name: str(spread) for name, spread in spreads.items() if spread}
        read["layouts"] = tuple(sorted(layouts.items()))
        read["literals"] = tuple(sorted(dict(read["literals"]).items()))
        return cls(**_with_windows(api, read))

    @cached_property
    def id(self) -> str:
        """Twelve hexadecimal digits that depend on the content alone."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:12]

    @cached_property
    def api(self) -> Operator:
        return find_operator(self.operator)

    @cached_property
    def leading_shape(self) -> tuple[int, ...]:
        """([N,] C)."""
        return self.shape[: -self.api.spatial_rank]

    @cached_property
    def spatial_shape(self) -> tuple[int, ...]:
        return self.shape[-self.api.spatial_rank :]

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The windows along each spatial axis."""
        return self.attributes.axes(self.spatial_shape)

    @cached_property
    def pooled_shape(self) -> tuple[int, ...]:
        """Shape of grad_output: ([N,] C, *windows)."""
        return (*self.leading_shape, *(axis.windows for axis in self.axes))

    @cached_property
    def planes(self) -> int:
        """N * C."""
        return prod(self.leading_shape)

    @cached_property
    def plane_size(self) -> int:
        """Cells of one plane of ``self``."""
        return prod(self.spatial_shape)

    @cached_property
    def plane_windows(self) -> int:
        """Windows of one plane, the elements of one plane of grad_output."""
        return prod(axis.windows for axis in self.axes)

    def tensor_shape(self, tensor: str) -> tuple[int, ...]:
        return self.api.tensor_shapes(self.shape, self.axes)[tensor]

    def recipe(self, tensor: str) -> str:
        """Name the recipe that makes a tensor; empty for one that the operator does not read."""
        recipes = {"grad_output": self.gradient, "indices": self.indices, "self": self.values}
        return recipes[tensor] if tensor in self.api.inputs else ""

    @cached_property
    def laid_out(self) -> dict[str, MemoryLayout]:
        """The layouts of the tensors that are not contiguous."""
        return {tensor: MemoryLayout.parse(layout) for tensor, layout in self.layouts}

    def layout(self, tensor: str) -> MemoryLayout:
        return self.laid_out.get(tensor, CONTIGUOUS)

    def sharing(self, tensor: str) -> str:
        """Name the axes along which elements of a tensor may share memory.

        None of an output; of indices those of planes, because windows of one plane need not have a cell in common.
        """
        if tensor in self.api.outputs:
            return ""
        return PLANES if tensor == "indices" else AXES

    def memory_bytes(self) -> int:
        """Count the bytes that the tensors of one call occupy, gaps included."""
        return sum(form.nbytes for form in self.forms.values())

    @cached_property
    def forms(self) -> dict[str, Form]:
        """How each of ``api.tensors`` lies in its storage."""
        return self.forms_in(self.laid_out, self.index_dtype)

    def forms_in(self, layouts: Mapping[str, MemoryLayout], index_dtype: str) -> dict[str, Form]:
        """Place the tensors in these layouts, with indices of that dtype; tensors not named are contiguous."""
        rank, dtypes = self.api.spatial_rank, {"indices": index_dtype}
        return {
            name: storage_form(shape, dtypes.get(name, self.dtype), layouts.get(name, CONTIGUOUS), rank)
            for name, shape in self.api.tensor_shapes(self.shape, self.axes).items()
        }

    @cached_property
    def taps(self) -> int:
        """Cells of the largest window, those outside the plane included."""
        return taps(self.axes)

    def known(self, tensor: str, elements: NDArray[Any]) -> NDArray[Any]:
        """Select the ``elements`` of a tensor, or flags of them, with a published meaning: of a mask, not all."""
        return self.api.indices.known(elements, self.pooled_shape, self.taps) if tensor == "indices" else elements

    @cached_property
    def has_bit_mask(self) -> bool:
        """Whether the tensor of indices holds bits, in an order that is not published."""
        return self.api.indices.are_bits(self.taps)

    @cached_property
    def has_empty_window(self) -> bool:
        """Whether some window has no cell inside the plane, so that no index is legal for it."""
        return any(axis.has_empty_window for axis in self.axes)

    @property
    def empty_windows(self) -> NDArray[np.bool_]:
        """Which windows have no cell inside the plane, of the pooled shape."""
        return np.broadcast_to(self.empty_windows_of_plane, self.pooled_shape)

    @property
    def empty_windows_of_plane(self) -> NDArray[np.bool_]:
        """Which windows of a plane have no cell inside it, of the shape of its windows."""
        empty = np.zeros((), bool)
        for axis in self.axes:
            empty = empty[..., None] | (axis.choices == 0)
        return empty

    def checked(self) -> Case:
        """Return the case; `CaseError` says what is wrong with it."""
        self._check_numbers()
        self._check_words()
        self._check_literals()
        self._check_layouts()
        return self

    def _check_numbers(self) -> None:
        api = self.api
        if not api.spatial_rank + 1 <= len(self.shape) <= api.spatial_rank + 2:
            raise CaseError(f"{api.name} takes a shape of {api.spatial_rank + 1} or {api.spatial_rank + 2} axes")
        if min(self.shape) < 0:
            raise CaseError(f"shape {list(self.shape)} has a negative length")
        try:
            self.attributes.check(api.spatial_rank, api.name)
            self.axes  # noqa: B018  (built once and kept)
        except ValueError as error:
            raise CaseError(str(error)) from error
        if max(prod(self.shape), prod(self.pooled_shape)) >= _INTEGERS:
            raise CaseError(f"a tensor of shape {list(self.shape)} has more elements than 63 bits count")
        if not 0 <= self.seed < _INTEGERS:
            raise CaseError(f"seed {self.seed} is not in [0, 2**63)")
        if abs(self.scale) > _MAX_SCALE:
            raise CaseError(f"scale {self.scale} is more than {_MAX_SCALE} away from 0: no format spans that")

    def _check_words(self) -> None:
        for name, known in _WORDS.items():
            word = getattr(self, name)
            spread = parse_spread(word) if name in ("gradient", "values") else None
            if spread is None and word not in known:
                raise CaseError(f"{name} {word!r} is not one of {', '.join(known)}")
            if spread and _overflows(spread.largest, FORMATS[self.dtype]):
                raise CaseError(f"{name} {word} overflows {self.dtype}")

    def _check_literals(self) -> None:
        """Check that indices point into the plane, and that other literals fit the dtype, which has NaN and inf."""
        for tensor, values in self.literals:
            count = self.planes * (self.plane_size if tensor == "self" else self.plane_windows)
            if tensor not in self.api.inputs or len(values) != count:
                raise CaseError(f"literals for {tensor!r} need to be {count} values of an input of {self.api.name}")
            for value in values:
                if tensor != "indices" and _overflows(value, FORMATS[self.dtype]):
                    raise CaseError(f"literal {value} of {tensor!r} overflows {self.dtype}")
                if tensor == "indices" and (not isinstance(value, int) or not 0 <= value < self.plane_size):
                    raise CaseError(f"index {value} of the literals is no integer in [0, {self.plane_size})")

    def _check_layouts(self) -> None:
        api = self.api
        for tensor, layout in self.laid_out.items():
            if tensor not in api.tensors:
                raise CaseError(f"{api.name} has no tensor {tensor!r} to lay out; it has {', '.join(api.tensors)}")
            if not layout.shares_along(self.sharing(tensor)):
                raise CaseError(f"tensor {tensor!r} cannot be {layout}: its elements there may not share memory")
            if not layout.suits(self.tensor_shape(tensor), api.spatial_rank):
                raise CaseError(f"tensor {tensor!r} cannot be {layout}: it has no such axis of more than one element")
        tags = {self.layout(tensor).tag for tensor in api.tensors}
        if len(tags) > 1:
            raise CaseError("a layout with a format tag is that of all tensors or of none")
        if tags != {""} and not (api.takes_tags and len(self.shape) == api.spatial_rank + 2):
            raise CaseError(f"layout nhwc is for batched calls of operators with such a tag, not for {api.name} here")


def _overflows(value: float, fmt: FloatFormat) -> bool:
    """Tell whether a finite number is beyond the format."""
    try:
        given = np.array([value], np.float64)
    except OverflowError:
        return True
    return bool(np.isfinite(given).all() and not np.isfinite(fmt.round(given)).all())


def _spelled(owner: Case | Windows) -> dict[str, Any]:
    """List every field that is not at its default, those of the windows where their owner has them."""
    spelled: dict[str, Any] = {}
    for name, default in _DEFAULTS[type(owner)].items():
        value = getattr(owner, name)
        if name == "attributes":
            spelled |= _spelled(value)
        elif default is MISSING or value != default:
            spelled[name] = dict(value) if name in ("layouts", "literals") else value
    return spelled


_DEFAULTS: Mapping[type, Mapping[str, Any]] = {
    owner: {field.name: field.default for field in fields(owner)} for owner in (Case, *KINDS)
}
"""Fields of cases and windows, each with its default, or MISSING."""


def _with_windows(api: Operator, flat: Mapping[str, Any]) -> dict[str, Any]:
    """Gather the fields of the windows into one."""
    names = {attribute.name for attribute in api.windows.attributes()}
    windows = api.windows(**{name: value for name, value in flat.items() if name in names})
    return {"attributes": windows} | {name: value for name, value in flat.items() if name not in names}


@cache
def _record_type(windows: type[Windows]) -> type[msgspec.Struct]:
    """Make the type of a case's JSON object, in which the fields of its windows stand beside its own."""
    types = get_type_hints(Case) | get_type_hints(windows)
    types |= {"layouts": dict[str, str], "literals": dict[str, tuple[int | float, ...]]}
    own = [field for field in (*fields(Case), *fields(windows)) if field.name != "attributes"]
    required = [(field.name, types[field.name]) for field in own if field.default is MISSING]
    optional = [(field.name, types[field.name], field.default) for field in own if field.default is not MISSING]
    return msgspec.defstruct("CaseRecord", [*required, *optional], forbid_unknown_fields=True)


def case_schema() -> dict[str, Any]:
    """Describe the JSON object of a case as JSON Schema.

    `Case.from_json` checks more: what follows from the operator, the shape and the dtype together.
    """
    kinds = dict.fromkeys(api.windows for api in OPERATORS.values())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "oneOf": [*map(_schema_of, kinds)]}


def _schema_of(windows: type[Windows]) -> dict[str, Any]:
    (schema,) = msgspec.json.schema_components([_record_type(windows)])[1].values()
    properties = schema["properties"]
    properties["operator"]["enum"] = [name for name, api in BY_NAME.items() if api.windows is windows]
    for name, words in _WORDS.items():
        properties[name]["enum"] = [*words]
    spread = {"pattern": f"^({'|'.join(spelling.partition('(')[0] for spelling in SPREADS)})\\(.*\\)$"}
    for name in ("gradient", "values"):
        properties[name]["anyOf"] = [{"enum": properties[name].pop("enum")}, spread]
    properties["layouts"]["additionalProperties"]["pattern"] = rf"^({'|'.join(LAYOUTS)})(\+[0-9]+)?$"
    properties["layouts"]["default"] = properties["literals"]["default"] = {}
    for name, about in properties.items():
        about["description"] = _ABOUT[name]
    return schema | {"title": f"Case with {windows.__name__.lower()} windows"}


_ABOUT = {
    "operator": "Name of the operator; its aclnn and aten names work too.",
    "shape": "Shape of self: [N,] C and the spatial axes.",
    "dtype": "dtype of all tensors but indices.",
    "index_dtype": "dtype of indices.",
    "kernel_size": "One length for all axes, or one per axis; so are the other lists.",
    "stride": "Empty: the kernel size.",
    "padding": "Empty: 0.",
    "dilation": "Empty: 1.",
    "ceil_mode": "Round the number of windows up.",
    "output_size": "Number of windows, one for all axes or one per axis.",
    "gradient": "Recipe of grad_output.",
    "indices": "Recipe of indices.",
    "values": "Recipe of self.",
    "scale": "Power of two that multiplies the gradient.",
    "layouts": "Tensor -> layout, or layout+offset in elements. A tensor that is missing is contiguous.",
    "deterministic": "Demand the deterministic mode.",
    "seed": "Seed of everything random in the data.",
    "literals": "Input -> its values in row-major order, in place of a recipe.",
}
"""Meanings of the fields of a case's JSON object."""

_WORDS: Mapping[str, Collection[str]] = {
    "dtype": FORMATS,
    "index_dtype": INDEX_DTYPES,
    "gradient": GRADIENTS,
    "indices": INDICES,
    "values": VALUES,
}
"""The words that a field may have; a gradient and values may be a spread, too."""
