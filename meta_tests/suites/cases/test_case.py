"""Cases survive the trip through their line, and a wrong line says what is wrong with it."""

import json
from dataclasses import replace

import pytest

from poolproof.references.layouts import LAYOUTS, MemoryLayout, extent
from poolproof.references.operators import OPERATORS, Operator
from poolproof.suites.cases.case import Case, CaseError
from poolproof.suites.cases.generation import generate
from poolproof.suites.cases.memory import allocate
from poolproof.suites.cases.operands import make_operands
from poolproof.suites.cases.strategies import Profile, cases
from poolproof.suites.cases.varying import (
    MAX_ELEMENTS,
    changed,
    differing_in_one,
    pairs_one_apart,
    parameters,
    spelled,
)


def test_the_id_is_that_of_the_content() -> None:
    """Pinned: an id that changes breaks waivers, histories and links."""
    windows = {"shape": (1, 2, 6, 6), "kernel_size": (3, 3), "layouts": (("self", "sliced"),)}
    case = Case.of("MaxPool2dWithIndicesBackward", **windows)
    rest = '"shape":[1,2,6,6],"kernel_size":[3,3],"layouts":{"self":"sliced"}'
    assert case.to_json() == f'{{"operator":"MaxPool2dWithIndicesBackward",{rest}}}'
    assert case.id == "d38e4e84c752"


@pytest.mark.parametrize("name", ["aclnnAdaptiveMaxPool2dBackward", "adaptive_max_pool2d_backward"])
def test_other_spellings_of_an_operator_are_the_same_case(name: str) -> None:
    case = Case.from_record({"operator": name, "shape": [1, 4, 4], "output_size": [2, 2]})
    assert case.operator == "AdaptiveMaxPool2dBackward"


GOOD = {"operator": "MaxPool2dWithIndicesBackward", "shape": [1, 2, 6, 6], "kernel_size": [3, 3]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operator": "MaxPool4d"}, "unknown operator 'MaxPool4d'"),
        ({"colour": "red"}, "no field 'colour'"),
        ({"shape": 7}, "Expected `array`, got `int` - at `[$].shape`"),
        ({"kernel_size": None}, "Object missing required field `kernel_size`"),
        ({"operator": "AdaptiveMaxPool2d", "kernel_size": None}, "Object missing required field `output_size`"),
        ({"shape": [6, 6]}, "takes a shape of 3 or 4 axes"),
        ({"shape": [1, -2, 6, 6]}, "negative length"),
        ({"kernel_size": [3, 3, 3]}, "kernel_size of MaxPool2dWithIndicesBackward has length 1 or 2"),
        ({"kernel_size": [0, 3]}, "kernel_size must be at least 1"),
        ({"stride": [-1]}, "stride must be at least 1"),
        ({"kernel_size": [9, 9]}, "has no window"),
        ({"dtype": "int8"}, "dtype 'int8' is not one of"),
        ({"gradient": "huge"}, "gradient 'huge' is not one of"),
        ({"ceil_mode": 1}, "Expected `bool`, got `int` - at `[$].ceil_mode`"),
        ({"seed": "7"}, "Expected `int`, got `str` - at `[$].seed`"),
        ({"layouts": {"self": "diagonal"}}, "unknown layout 'diagonal'"),
        ({"layouts": {"out": "sliced"}}, "has no tensor 'out'"),
        ({"layouts": {"grad_input": "expanded_n"}}, "cannot be expanded_n: its elements there may not share memory"),
        ({"layouts": {"indices": "expanded_h"}}, "cannot be expanded_h: its elements there may not share memory"),
        ({"layouts": {"self": "expanded_d"}}, "cannot be expanded_d: it has no such axis"),
        ({"layouts": {"self": "expanded_n"}}, "cannot be expanded_n: it has no such axis of more than one element"),
        ({"layouts": ["self"]}, "Expected `object`, got `array` - at `[$].layouts`"),
        ({"operator": "AdaptiveMaxPool2d"}, "AdaptiveMaxPool2d has no field 'kernel_size'; it has operator, shape"),
        ({"output_size": [3, 3]}, "has no field 'output_size'"),
        ({"padding": [2, 0]}, r"padding \[2, 0\] exceeds half of kernel_size, \[1, 1\]"),
        ({"seed": -1}, "seed -1 is not in"),
        ({"seed": 2**63}, "is not in"),
        ({"scale": 2**40}, "scale 1099511627776 is more than 2100 away from 0"),
        *(
            ({"literals": {"indices": [0] * 7 + [index]}}, "is no integer in")
            for index in (-1, 36, 2**70, float("nan"), 0.5)
        ),
        ({"literals": {"grad_output": [1] * 7 + [1e39]}}, r"literal 1e\+39 of 'grad_output' overflows float32"),
        ({"literals": {"grad_output": [1] * 7 + [10**400]}}, "overflows float32"),
        ({"stride": [10**400]}, "beyond every address"),
        ({"shape": [2**62, 3, 6, 4]}, "more elements than 63 bits count"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(change: dict[str, object], message: str) -> None:
    """None leaves a field out."""
    given = {name: value for name, value in (GOOD | change).items() if value is not None}
    with pytest.raises(CaseError, match=message) as error:
        Case.from_json(json.dumps(given))
    assert "\n" not in str(error.value)


def test_nan_and_infinities_are_legal_values() -> None:
    literals = {"grad_output": [float("nan"), float("inf"), 0, 3.4e38] * 2, "indices": [0, 7, 14, 35] * 2}
    assert dict(Case.from_json(json.dumps(GOOD | {"literals": literals})).literals)["indices"] == (0, 7, 14, 35) * 2


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("offset", [0, 5])
def test_layouts_keep_the_content_and_fit_their_storage(name: str, offset: int) -> None:
    layout = MemoryLayout(name, offset)
    assert MemoryLayout.parse(str(layout)) == layout
    windows = {"shape": (2, 3, 4, 5, 6), "kernel_size": (2,), "layouts": (("self", str(layout)),)}
    case = Case.of("MaxPool3dWithArgmaxBackward", values="ties", **windows)
    operands = make_operands(case)
    tensors = allocate(operands).tensors
    assert case.memory_bytes() == sum(len(tensor.storage) for tensor in tensors.values())
    tensor = tensors["self"]
    assert (tensor.array == operands.values).all()
    assert tensor.offset == offset + MemoryLayout(name).place(case.shape, 3).start
    assert tensor.storage_elements == tensor.offset + extent(case.shape, tensor.strides)
    last = tensor.offset + sum((size - 1) * stride for size, stride in zip(case.shape, tensor.strides, strict=True))
    assert last == tensor.storage_elements - 1


# Cases that differ from one in a single respect are legal, and differ in that.


@pytest.mark.parametrize("operator", OPERATORS.values(), ids=lambda operator: operator.name)
def test_what_is_turned_is_legal_and_as_wanted(operator: Operator) -> None:
    drawn = generate(cases.make(operator, "float32", "int64", Profile(empty_batches=False)), 12, 3)
    made = 0
    for case in drawn:
        for parameter in parameters(case):
            assert parameter.with_value(parameter.low - 1) is None
            assert parameter.with_value(parameter.most + 1) is None
            for value in (1, 2, 5, 64):
                other = parameter.with_value(value)
                if other is not None:
                    made += 1
                    assert Case.from_json(other.to_json()) == other
                    assert not other.has_empty_window
                    named = other.shape if parameter.name in "NCDHW" else getattr(other.attributes, parameter.name)
                    assert value in named
    assert made > 100


def test_nothing_is_made_that_is_too_large_or_whose_windows_have_no_cells_unless_the_case_has_such() -> None:
    case = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 1, 8, 8), kernel_size=(2, 2))
    planes = next(parameter for parameter in parameters(case) if parameter.name == "C")
    assert planes.with_value(MAX_ELEMENTS // 64) is not None
    assert planes.with_value(MAX_ELEMENTS // 64 + 1) is None
    shape, windows = (1, 1, 1, 1), {"kernel_size": (2, 1), "stride": (1,), "padding": (1, 0)}
    empty = Case.of("MaxPool2dWithIndices", shape=shape, dilation=(2, 1), **windows)
    whole = Case.of("MaxPool2dWithIndices", shape=shape, dilation=(1, 1), **windows)
    assert empty.has_empty_window
    assert not whole.has_empty_window
    assert changed(empty, {"values": "ties"}) is not None
    assert changed(whole, {"dilation": [2, 1]}) is None


def test_pairs_differ_in_each_parameter_in_both_orders_each_at_a_place_of_its_own() -> None:
    case = Case.of("MaxPool2dWithIndices", index_dtype="int32", shape=(1, 2, 9, 8), kernel_size=(3,), stride=(2,))
    orders: dict[str, set[bool]] = {}
    for seed in (0, 1):
        own = replace(case, seed=seed)
        pairs = pairs_one_apart(own)
        places = {each.layout("self") for pair in pairs for each in pair}
        assert len(places) == len(pairs) + 2, "each pair has one, those that differ in their layout two"
        assert own.layout("self") not in places
        for number, pair in enumerate(pairs, 1):
            first, second = map(spelled, pair)
            (name,) = (name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
            moved = replace(own, layouts=(("self", f"contiguous+{32 * number}"),))
            assert moved in pair
            orders.setdefault(name, set()).add(pair[0] == moved)
    windows = {"kernel_size", "stride", "padding", "dilation", "ceil_mode"}
    assert orders.keys() == windows | {"shape", "dtype", "index_dtype", "layouts", "deterministic"}
    assert all(order == {True, False} for order in orders.values())
    assert pairs_one_apart(replace(case, shape=(0, 2, 9, 8))) == []


def test_a_list_differs_on_each_axis_on_all_and_in_their_order_by_turns() -> None:
    """A key may hold one axis of it alone, or lose their order."""
    case = Case.of("MaxPool2dWithIndices", shape=(1, 2, 9, 12), kernel_size=(2, 3), stride=(2,))
    found = [other for seed in range(12) for other in differing_in_one(replace(case, seed=seed))]
    assert {(3, 3), (2, 4), (4, 4), (3, 2)} <= {other.attributes.kernel_size for other in found}
    assert {(1, 3, 9, 12), (2, 2, 9, 12), (1, 2, 10, 12), (1, 2, 12, 9)} <= {other.shape for other in found}
    pairs = [pair for seed in range(12) for pair in pairs_one_apart(replace(case, seed=seed))]
    kernels = {tuple(each.attributes.kernel_size for each in pair) for pair in pairs}
    assert {((2, 3), other) for other in ((3, 3), (2, 4), (4, 4), (3, 2))} <= kernels, "the case before the other"
    assert {(other, (2, 3)) for other in ((3, 3), (2, 4), (4, 4), (3, 2))} <= kernels, "and behind it"


def test_half_precision_of_the_other_kind_and_an_offset_alone_are_one_parameter() -> None:
    """Of one size, a cache may take them for the same; and two views of one storage differ in nothing else."""
    case = Case.of("MaxPool2dWithIndicesBackward", dtype="float16", shape=(1, 2, 9, 8), kernel_size=(3,))
    others = differing_in_one(case)
    assert replace(case, dtype="bfloat16") in others
    assert replace(case, layouts=(("grad_output", "contiguous+16"),)) in others


def test_of_a_large_case_others_differ_in_one_parameter_with_each_seed() -> None:
    """To call dozens as large takes longer than to judge it; what one seed leaves out another calls."""
    small = Case.of("MaxPool2dWithIndicesBackward", shape=(1, 1, 64, 64), kernel_size=(3,), stride=(2,))
    large, huge = replace(small, shape=(1, 1, 512, 512)), replace(small, shape=(1, 40, 512, 512))
    found = [differing_in_one(replace(large, seed=seed)) for seed in range(64)]
    assert {len(others) for others in found} == {4}
    assert len({each.to_json() for others in found for each in others}) > len(differing_in_one(small)) > 12
    assert differing_in_one(huge) == []
