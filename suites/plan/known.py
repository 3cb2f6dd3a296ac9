"""Known facts about a run without its device: its selection, its backends, and how they add.

A record has all of it, but its author may gain by another. A backend's properties follow from its built-in name, its
product's contract and the operator family. Only the rest is taken from the record of other backends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, cast

from poolproof.backends.abilities import ALL
from poolproof.backends.aclnn.sequences import ACTIONS as ACLNN_ACTIONS
from poolproof.backends.base import Backend, Call, Tensor
from poolproof.backends.registry import BUILT_IN, KERNELS, canonical
from poolproof.backends.torch_eager import TorchEager
from poolproof.backends.torch_npu import TorchNpu
from poolproof.backends.torch_streams import ACTIONS as TORCH_ACTIONS
from poolproof.references.accumulation import NATIVE
from poolproof.references.forward_rule import FAMILY_RULE
from poolproof.references.operators import OPERATORS, find_operator
from poolproof.references.products import PRODUCTS, Product, product_of
from poolproof.references.refusals import DECLARED, REFUSALS
from poolproof.reports.rows.schema import Row
from poolproof.reports.rows.verdicts import Verdict
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.varying import needs_producer, producers
from poolproof.suites.judging import expected
from poolproof.suites.judging.trial import NOT_MADE
from poolproof.suites.plan.plans import Survey, subjects
from poolproof.suites.plan.selection import Selection

_EMULATED = {f"emulator-{product.name.lower()}": product for product in PRODUCTS.values()}
_TORCH = {f"torch-{device}": device for device in ("cpu", "cuda", "npu")}
_ON_PRODUCTS = ("aclnn", "torch-npu")
_NATIVE = "POOLPROOF_EMULATOR_ACCUMULATION=native"


def record_problems(run: Mapping[str, Any]) -> Iterator[str]:
    """Yield the contradictions of run.json, in itself or with the known backends; `BadInput` if it cannot be read."""
    selection = Selection.from_record(run["selection"])
    yield from _option_problems(run, selection)
    if selection.surveys.keys() != run["backends"].keys():
        yield f"{', '.join(selection.surveys)} was selected, and the environments are of {', '.join(run['backends'])}"
    for name, survey in selection.surveys.items():
        if not survey.subjects:
            yield f"{name} is recorded without operators"
            continue
        if survey.to_record() != run["selection"]["backends"][name]:
            yield f"the declarations of {name} are not written as a session writes them"
        yield from _survey_problems(name, survey)
        environment = run["backends"].get(name, {})
        chip = product_of(environment.get("soc", ""))
        for stated in ([environment["product"]] if "product" in environment else []) + ([str(chip)] if chip else []):
            if survey.product and stated != survey.product_name and name not in _EMULATED:
                yield f"{name} is {stated} by its environment, and {survey.product_name} by the selection"


def _option_problems(run: Mapping[str, Any], selection: Selection) -> Iterator[str]:
    """Compare plan, seed and the typed options with the selection; other options may be in a configuration file."""
    for name, value in (("plan", selection.plan.name), ("seed", selection.seed)):
        if run[name] != value:
            yield f"run.json says {name} {run[name]!r}, and the cases are of {name} {value!r}"
    selected: dict[str, Sequence[object]] = {
        "plan": [selection.plan.name],
        "seed": [str(selection.seed)],
        "cases": [str(selection.plan.cases)],
        "shard": [str(selection.shard)],
        "operator": selection.operators,
        "dtype": selection.dtypes,
        "aspect": selection.aspects,
        "backend": tuple(selection.surveys),
    }
    for name, values in selected.items():
        typed = list(_typed(f"--{name}", run["arguments"]))
        read: list[object] = []
        with suppress(KeyError, ValueError):  # words that no session takes are not its options
            counted = typed if name in ("operator", "dtype", "aspect", "backend") else typed[-1:]
            read = [_SPELLED.get(name, str)(word) for word in counted]
        if read and list(dict.fromkeys(read)) != list(dict.fromkeys(values)):
            yield f"the run was started with --{name} {', '.join(typed)}, and selected {', '.join(map(str, values))}"
    if not set(_typed("--case", run["arguments"])) <= {*selection.lines}:
        yield "the run was started with a --case that is not in the selection"
    if run["selection"].get("options") != selection.options:
        yield "run.json names other options that leave less of the plan than the selection"
    if "--strict-waivers" in run["arguments"] and not run["strict_waivers"]:
        yield "the run was started with --strict-waivers, and is recorded not to be strict"


_SPELLED: Mapping[str, Callable[[str], object]] = {
    "operator": lambda word: find_operator(word).name,
    "backend": canonical,
    "seed": lambda word: str(int(word)),
    "cases": lambda word: str(int(word)),
}


def _typed(option: str, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the values of an option on the command line."""
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if word == option:
            yield following
        elif word.startswith(f"{option}="):
            yield word.removeprefix(f"{option}=")


def _survey_problems(name: str, survey: Survey) -> Iterator[str]:
    """Compare the record of a backend with its name, its product's contract and the operator family."""
    is_without = (name in BUILT_IN and name not in _ON_PRODUCTS) or name.startswith(KERNELS)
    product = _EMULATED.get(name, None if is_without else survey.product)
    if product != survey.product:
        yield f"{name} is recorded to be product {survey.product_name or 'none'}, and it is {product or 'none'}"
        return
    known = subjects(name, _stand_in(name, survey))
    pairs = [(each.operator.name, each.dtype, each.index_dtype) for each in known]
    recorded = [(each.operator.name, each.dtype, each.index_dtype) for each in survey.subjects]
    if pairs != recorded:
        yield f"{name}: the run records {len(recorded):,} pairs of operator and dtypes, and there are {len(pairs):,}"
        return
    for was, now in zip(survey.subjects, known, strict=True):
        if was != now:
            pair = f"{was.operator.name} {was.dtype} {was.index_dtype}"
            values = ((field.name, getattr(was, field.name), getattr(now, field.name)) for field in fields(was))
            what, there, here = next(each for each in values if each[1] != each[2])
            yield f"{name} {pair}: the run records {what} as {there!s}, and the known value is {here!s}"


def _stand_in(name: str, survey: Survey) -> Backend:
    """Return an object with the backend's declarations: the known ones, and the rest as recorded."""
    reasons = {(each.operator.name, each.dtype, each.index_dtype): each.unsupported for each in survey.subjects}
    able = {each.operator.name: each.abilities for each in survey.subjects}
    first = survey.subjects[0]
    stand_in = SimpleNamespace(
        product=survey.product,
        tags=first.tags,
        actions=first.actions,
        abilities=lambda operator: able.get(operator.name, ALL),
        unsupported=lambda operator, *pair: reasons.get((operator.name, *pair)),
    )
    if name in _TORCH:
        eager = _torch(name, survey.product)
        if isinstance(eager, TorchNpu):  # further operators follow from the product
            eager.is_compatible = reasons.get(("MaxPool2dWithMask", "float32", "int8")) is not None
        return eager
    if name in _EMULATED or name == "aclnn":
        assert survey.product is not None
        not_exported = {operator: f"symbol aclnn{operator} is not exported" for operator in OPERATORS}
        recorded = {(each.operator.name, each.unsupported) for each in survey.subjects if name == "aclnn"}
        missing = dict(recorded & not_exported.items())  # in all dtypes: older libraries lack operators
        stand_in.tags = survey.product.tags
        stand_in.actions = tuple(each for each in ACLNN_ACTIONS if each != "readdressed" or each in first.actions)
        stand_in.abilities = lambda _: ALL
        stand_in.unsupported = lambda operator, *_: missing.get(operator.name)
    return cast(Backend, stand_in)


def _torch(name: str, product: Product | None) -> TorchEager:
    """Return an object with torch's declarations on a device, which need not be present: it makes no calls."""
    kind = TorchEager if product is None else TorchNpu
    eager = kind.__new__(kind)
    eager.device, eager.interface, eager.product = _TORCH[name], name, product
    if name != "torch-cpu":
        eager.actions = TORCH_ACTIONS
    return eager


def row_problem(row: Row, run: Mapping[str, Any]) -> str:
    """Return the contradiction of a row with its case, or with facts about its backend; empty if none."""
    name, environment = row["backend"], run["backends"].get(row["backend"], {})
    if (
        row["model"] is not None
        and row["operator"] in OPERATORS
        and (model := _model_of(name, row, environment)) not in (None, row["model"])
    ):
        return f"is judged by the model {row['model']!r}, and that of {name} is {model}"
    if name == "aclnn" and row.get("route"):
        return f"took the route {row['route']!r}, which emulated libraries name and CANN's do not"
    if row["verdict"] == Verdict.REFUSED:
        return _refusal_problem(row)
    return ""


def _model_of(name: str, row: Row, environment: Mapping[str, str]) -> str | None:
    product, saturates = PRODUCTS.get(environment.get("product", "")), environment.get("saturation") == "saturate"
    return _model(name, row["operator"], row["dtype"], product, saturates, _NATIVE in (row["given"] or ()))


@lru_cache
def _model(
    name: str, operator: str, dtype: str, product: Product | None, saturates: bool, is_native: bool
) -> str | None:
    """Return a built-in backend's accumulation model or forward rule as text; None for others, which declare it."""
    if not OPERATORS[operator].is_backward:
        return str(FAMILY_RULE) if name in {*_TORCH, *_EMULATED, "aclnn"} else None
    if name in _TORCH:
        call = SimpleNamespace(dtype=dtype, operator=OPERATORS[operator])
        return str(_torch(name, product).accumulation(cast(Call, call)))
    product = _EMULATED.get(name) or (product if name == "aclnn" else None)
    if product is None:
        return None
    model = NATIVE if is_native and dtype != "float32" else product.accumulation(operator, dtype)
    return str(replace(model, saturates=saturates))


def _refusal_problem(row: Row) -> str:
    """Return the fault of a row's documented refusal; empty if a document allows it."""
    try:
        record = json.loads(row["case"])
        calls = [record["case"]] if "case" in record else record.get("calls", [record])  # a sequence makes several
        cases = [Case.from_record(each) for each in calls]
    except (CaseError, ValueError, TypeError, AttributeError, RecursionError):
        return "is recorded as refused as documented, and is about no case"
    product = PRODUCTS.get(str(row["product"]))
    route, _, device = row["backend"].rpartition(":")
    own = f"torch-{device}" if route in ("torch-autograd", "torch-compile") else row["backend"]
    interfaces = [own] if own != row["backend"] or own in BUILT_IN else list(REFUSALS)
    cases += [each for case in cases if needs_producer(case) for each in producers(case)]
    if product is None and own not in BUILT_IN and str(row["reason"]).startswith(DECLARED):
        return ""  # the word of an adapter, as its models are
    known = {"product": product, "may_refuse": lambda _: ""}
    stand_ins = [cast(Backend, SimpleNamespace(interface=name, **known)) for name in interfaces]
    allowed = [expected.refusal(each, case, _described_call(case)) for each in stand_ins for case in cases]
    reasons = {each.reason for each in allowed if each is not None}
    made_of_others = str(row["reason"]).startswith(NOT_MADE) and bool(reasons)
    if made_of_others or row["reason"] in reasons:
        return ""
    return f"is recorded as refused as documented, and {'other documents do' if reasons else 'no document does'}"


def _described_call(case: Case) -> Call:
    """Return a call described by its forms, without memory."""
    tensors = {
        name: SimpleNamespace(**form._asdict(), offset=form.start, storage_elements=form.extent)
        for name, form in case.forms.items()
    }
    return Call(case.api, case.attributes, cast(Mapping[str, Tensor], tensors), case.deterministic)
