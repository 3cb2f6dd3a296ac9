"""Whether the emulator's kernels are right, and whether the named shapes take the named routes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from emulated_calls import (
    BackwardCase,
    Geometry,
    adaptive,
    backward_case,
    current_products,
    draw_geometry,
    draws,
    expected_forward,
    mask_shape,
    spread,
    untouched,
    windowed,
)
from emulator_driver import Emulator, View, dense, fresh
from poolproof.backends.emulator import library
from poolproof.references.accumulation import ACC32, NATIVE, AccumulationModel
from poolproof.references.formats import FORMATS
from poolproof.references.indices import MASK
from poolproof.references.operators import BACKWARDS, FORWARDS, OPERATORS, Operator
from poolproof.references.windows import Adaptive, Windowed

PRODUCTS = ("A2", "A3", "950")
HALVES = ("float16", "bfloat16")
CASES = 40
POOL_2D, POOL_3D = "MaxPool2dWithIndicesBackward", "MaxPool3dWithArgmaxBackward"
ADAPTIVE_3D = "AdaptiveMaxPool3dBackward"


@pytest.fixture(scope="module")
def emulators() -> Iterator[dict[str, Emulator]]:
    with current_products() as loaded:
        yield loaded


def on_every_product(operators: Iterable[Operator]) -> pytest.MarkDecorator:
    """But for masks, which the 950 refuses."""
    pairs = [(each, name) for each in operators for name in PRODUCTS if (each.indices, name) != (MASK, "950")]
    return pytest.mark.parametrize(("operator", "product"), pairs, ids=lambda value: getattr(value, "name", value))


def model(operator: Operator, product: str) -> AccumulationModel:
    """The 950's adaptive backward adds in the value type; everything else in float32."""
    return NATIVE if operator.windows is Adaptive and product == "950" else ACC32


def check(case: BackwardCase, indices: np.ndarray, emulator: Emulator, accumulation: AccumulationModel) -> str:
    """Run the case and demand the right values, untouched gaps and inputs; the route that was taken."""
    before = {name: view.storage.copy() for name, view in case.views.items()}
    outcome = case.run(emulator)
    assert outcome.ok, (outcome, case.geometry)
    rejected = case.rejected(indices, accumulation)
    assert not rejected.any(), (outcome.route, case.geometry, np.argwhere(rejected)[:3])
    assert untouched(case.views["gradInput"], before["gradInput"])
    for name in ("gradOutput", "self", "indices"):
        assert case.views[name].storage.tobytes() == before[name].tobytes(), name
    return outcome.route


@on_every_product(BACKWARDS)
def test_backward_values(emulators: dict[str, Emulator], product: str, operator: Operator) -> None:
    name, is_950 = operator.name, product == "950"
    dilates = name == POOL_3D or (is_950 and name.startswith("MaxPool2d"))
    dtypes = ("float32", *HALVES) if is_950 or name != POOL_2D else ("float32",)
    wide_indices = operator.indices is not MASK and (is_950 or name == "AdaptiveMaxPool2dBackward")
    index_dtypes = ("int32", "int64") if wide_indices else ("int32",)
    for number, rng in enumerate(draws(1, CASES)):
        geometry = draw_geometry(rng, operator, dilates)
        dtype, index_dtype = str(rng.choice(dtypes)), str(rng.choice(index_dtypes))
        case, indices = backward_case(rng, name, geometry, dtype, index_dtype)
        emulators[product].call("aclrtSetSysParamOpt", 0, number % 2)
        check(case, indices, emulators[product], model(operator, product))


@on_every_product(FORWARDS)
def test_forward_values(emulators: dict[str, Emulator], product: str, operator: Operator) -> None:
    is_950, masked = product == "950", operator.indices is MASK
    either = ("int32", "int64") if is_950 or operator.name == "MaxPool2dWithIndices" else ("int32",)
    index_dtypes = ("int64",) if operator.name == "AdaptiveMaxPool2d" else either
    for rng in draws(2, CASES // 2):
        geometry = draw_geometry(rng, operator, is_950 and operator.windows is Windowed)
        values = draw_values(rng, geometry.input_shape, str(rng.choice(["float32", *HALVES])))
        shape, index_dtype = geometry.output_shape, str(rng.choice(index_dtypes))
        indices = np.full(mask_shape(geometry), -1, np.int8) if masked else np.full(shape, -1, index_dtype)
        views = {
            "self": spread(rng, values, True),
            "out": spread(rng, np.zeros(shape, values.dtype), False),
            "indices": View(indices.reshape(-1), indices.shape) if masked else spread(rng, indices, False),
        }
        lists = forward_lists(geometry)
        outcome = emulators[product].run(f"aclnn{operator.name}", views, lists, geometry.ceil_mode)
        assert outcome.ok, (outcome, geometry)
        maxima, expected = expected_forward(views["self"].array, geometry)
        np.testing.assert_array_equal(views["out"].array.astype(np.float64), maxima.astype(np.float64))
        stored = views["indices"].storage[: expected.size * 4] if masked else views["indices"].array
        found = stored.view(np.int32).reshape(expected.shape) if masked else stored
        np.testing.assert_array_equal(found, expected)


def draw_values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Few different values, so that ties are frequent, and NaN and -inf among them."""
    values = rng.choice([np.nan, -np.inf, -1.0, 0.0, 1.0, 2.0], size=shape, p=[0.1, 0.3, *[0.15] * 4])
    return values.astype(FORMATS[dtype].dtype)


def forward_lists(geometry: Geometry) -> dict[str, list[int]]:
    return geometry.lists or {"outputSize": list(geometry.output_shape[len(geometry.leading) :])}


CHANNELS_LAST = [
    ("MaxPool2dWithIndices", windowed((2, 3), [7, 9], [3, 2], [2, 2], [1, 1]), "NHWC", "float32"),
    ("MaxPool3dWithArgmax", windowed((2, 3), [4, 5, 6], [2, 3, 2]), "NDHWC", "float16"),
    ("AdaptiveMaxPool2d", adaptive((2, 3), [7, 9], [3, 4]), "NHWC", "float64"),
]


@pytest.mark.parametrize(("name", "geometry", "tag", "dtype"), CHANNELS_LAST, ids=str)
def test_forward_channels_last(
    emulators: dict[str, Emulator], name: str, geometry: Geometry, tag: str, dtype: str
) -> None:
    values = draw_values(np.random.default_rng(11), geometry.input_shape, dtype)
    maxima, expected = expected_forward(values, geometry)
    views = {
        "self": dense(np.moveaxis(values, 1, -1), tag),
        "out": dense(np.moveaxis(np.zeros_like(maxima), 1, -1), tag),
        "indices": dense(np.moveaxis(np.zeros_like(expected), 1, -1), tag),
    }
    assert emulators["950"].run(f"aclnn{name}", views, forward_lists(geometry), geometry.ceil_mode).ok
    np.testing.assert_array_equal(np.moveaxis(views["out"].array, -1, 1).astype(np.float64), maxima.astype(np.float64))
    np.testing.assert_array_equal(np.moveaxis(views["indices"].array, -1, 1), expected)


def one_case(name: str, geometry: Geometry, dtype: str = "float32", spreads: bool = True) -> BackwardCase:
    case, _ = backward_case(np.random.default_rng(4), name, geometry, dtype, "int32", spreads)
    return case


def test_index_content_does_not_matter_to_a_kernel_of_one(emulators: dict[str, Emulator]) -> None:
    case = one_case(POOL_2D, windowed([2, 3], [4, 5], [1, 1]))
    case.views["indices"].array[...] = -77
    outcome = case.run(emulators["950"])
    assert outcome.ok
    assert "key 800;" in outcome.route
    np.testing.assert_array_equal(case.views["gradInput"].array, case.gradients)


@pytest.mark.parametrize(("kernel", "expected"), [([1, 2, 2], 0.0), ([1, 20, 20], 1.0)])
def test_an_index_outside_its_window_depends_on_the_template(
    emulators: dict[str, Emulator], kernel: list[int], expected: float
) -> None:
    """The normal template drops such a gradient, scatter stores it."""
    case = one_case(POOL_3D, windowed([1, 1], [1, 40, 40], kernel), spreads=False)
    case.views["gradOutput"].storage[...] = 1.0
    case.views["gradOutput"].storage[0] = 0.0
    case.views["indices"].array[...] = 0  # the first cell, in the first window only
    assert case.run(emulators["A2"]).ok
    assert case.views["gradInput"].storage[0] == expected


def test_an_index_outside_the_tensor_is_a_device_memory_error() -> None:
    geometry = windowed([1, 1], [1, 40, 40], [1, 20, 20])
    case = one_case(POOL_3D, geometry, spreads=False)
    case.views["indices"].array[...] = 100_000
    with (
        fresh(library(), "A2") as disposable,
        disposable.prepared(f"aclnn{POOL_3D}", case.views, geometry.lists) as call,
    ):
        assert call.launch().synchronisation == 507053
        assert call.launch().phase_two == 361001, "the context stays poisoned"


def test_half_sums_are_float32_but_native_on_the_950_adaptive(emulators: dict[str, Emulator]) -> None:
    """1000 windows over one cell: bfloat16 additions of 1 stall at 256, float32 sums do not."""
    sums = {}
    for product in PRODUCTS:
        case = one_case(ADAPTIVE_3D, adaptive([1, 1], [2, 1, 1], [1000, 1, 1]), "bfloat16")
        case.views["gradOutput"].array[...] = 1.0
        case.views["indices"].array[...] = 0
        emulators[product].run(f"aclnn{ADAPTIVE_3D}", case.views)
        sums[product] = float(case.views["gradInput"].array.reshape(-1)[0])
    assert sums["950"] == 256.0 < sums["A2"] == sums["A3"]


@pytest.mark.parametrize(("mode", "expected"), [(1, np.inf), (0, 65504.0)])
def test_overflow_follows_the_saturation_mode(emulators: dict[str, Emulator], mode: int, expected: float) -> None:
    geometry = windowed([1, 1], [1, 1, 3], [1, 1, 2], [1, 1, 1])
    case = one_case(POOL_3D, geometry, "float16")
    case.views["gradOutput"].array[...] = 60000.0
    case.views["indices"].array[...] = 1
    emulators["A2"].call("aclrtSetDeviceSatMode", mode)
    case.run(emulators["A2"])
    emulators["A2"].call("aclrtSetDeviceSatMode", 1)
    assert case.views["gradInput"].array.reshape(-1)[1] == expected


ROUTES_220 = [
    (windowed((2, 64), [4, 6, 6], [1, 2, 2]), "normal; key 0"),
    (windowed((2, 40), [1, 15, 15], [1, 9, 9], [1, 1, 1], [0, 4, 4]), "normal; key 0"),
    (windowed((1, 40), [16, 9, 9], [1, 3, 3], [1, 2, 2]), "normal overlap; key 100"),
    (windowed((1, 2), [10, 78, 146], [5, 1, 6], [8, 13, 18], [1, 0, 1]), "cut kernel; key 31"),
    (windowed((1, 1), [22, 19, 8], [22, 19, 4]), "scatter; key 2"),
    (windowed((1, 2), [1, 34, 34], [1, 17, 17], [1, 8, 8]), "scatter overlap; key 102"),
    (windowed((1, 1), [2, 6, 6], [1, 2, 2], dilation=[1, 1, 2]), "scatter overlap; key 102"),
    (windowed((1, 1), [2, 6, 6], [1, 1, 1], dilation=[1, 1, 2]), "scatter; key 2"),
]
ROUTES_950 = [
    (POOL_3D, windowed((5, 3), [4, 4, 4], [2, 2, 2], None, [1, 1, 1]), "simd, whole planes; key 2049"),
    (POOL_3D, windowed((1, 2), [8, 10, 514], [2, 2, 2]), "simd, aligned; key 1"),
    (POOL_3D, windowed((2, 2), [10, 11, 1024], [2, 4, 5], [1, 2, 3], [1, 2, 2]), "simd, unaligned; key 1025"),
    (POOL_3D, windowed((1, 1), [60] * 3, [24] * 3, [1] * 3), "simt; key unknown"),
    (POOL_2D, windowed((2, 3), [64, 64], [64, 64]), "scalar; key 301"),
    (POOL_2D, windowed((3, 12), [2, 22], [2, 6], ceil_mode=True), "simt; key 900"),
    (POOL_2D, windowed((2, 3), [64, 64], [3, 3], [2, 2], [1, 1]), "vector; key 101"),
    (POOL_2D, windowed((40, 30), [32, 32], [2, 2]), "vector; key 100"),
    (POOL_2D, windowed((2, 3), [64, 64], [2, 2], dilation=[2, 2]), "vector; key 101"),
    (POOL_2D, windowed((2, 6), [8, 3], [1, 1]), "kernel of one; key 800"),
]
ROUTES_ADAPTIVE = [
    ("A2", [6, 8, 4], [3, 4, 2], "MaxPool3DGradWithArgmax: normal; key 0;"),
    ("A3", [24, 24, 4], [2, 2, 2], "MaxPool3DGradWithArgmax: scatter; key 2;"),
    ("A2", [7, 5, 3], [3, 4, 8], "AdaptiveMaxPool3DGrad: normal overlap; key 100;"),
    ("A2", [41, 41, 3], [2, 3, 1], "AdaptiveMaxPool3DGrad: scatter overlap; key 102;"),
    ("950", [6, 8, 4], [3, 4, 2], "AdaptiveMaxPool3DGrad: simt; key 16;"),
    ("950", [7, 5, 3], [3, 4, 8], "AdaptiveMaxPool3DGrad: simt atomic; key 16;"),
]
ROUTES = [
    *(
        (product, POOL_3D, geometry, dtype, f"MaxPool3DGradWithArgmax: {branch};")
        for product in ("A2", "A3")
        for geometry, branch in ROUTES_220
        for dtype in ("float32", "bfloat16")
    ),
    *(("950", name, geometry, "float32", f": {branch};") for name, geometry, branch in ROUTES_950),
    *(
        (product, ADAPTIVE_3D, adaptive((2, 2), sizes, outputs), "float16", branch)
        for product, sizes, outputs, branch in ROUTES_ADAPTIVE
    ),
]


@pytest.mark.parametrize(("product", "name", "geometry", "dtype", "branch"), ROUTES, ids=str)
def test_routes(
    emulators: dict[str, Emulator], product: str, name: str, geometry: Geometry, dtype: str, branch: str
) -> None:
    emulators[product].call("aclrtSetSysParamOpt", 0, 0)
    case, indices = backward_case(np.random.default_rng(9), name, geometry, dtype, "int32", spreads=False)
    assert branch in check(case, indices, emulators[product], model(OPERATORS[name], product))


@pytest.mark.parametrize(
    ("shape", "padding", "key"), [((2, 18, 30, 2), 1, 502), ((2, 18, 60, 20), 1, 601), ((2, 18, 30, 200), 1, 701)]
)
def test_channels_last_on_the_950(
    emulators: dict[str, Emulator], shape: tuple[int, ...], padding: int, key: int
) -> None:
    batch, height, width, channels = shape
    geometry = windowed((batch, channels), [height, width], [3, 3], [2, 2], [padding, padding])
    case, indices = backward_case(np.random.default_rng(8), POOL_2D, geometry, "float32", "int32", spreads=False)
    moved = {name: dense(np.moveaxis(view.array, 1, -1), "NHWC") for name, view in case.views.items()}
    outcome = emulators["950"].run(f"aclnn{POOL_2D}", moved, geometry.lists)
    assert outcome.ok
    assert f"; key {key};" in outcome.route
    case.views["gradInput"] = dense(np.moveaxis(moved["gradInput"].array, -1, 1))
    assert not case.rejected(indices, ACC32).any()


@pytest.mark.parametrize(("product", "name"), [("A2", POOL_3D), ("950", ADAPTIVE_3D)])
def test_only_determinism_fixes_the_order_of_additions(emulators: dict[str, Emulator], product: str, name: str) -> None:
    """Without it a shape with three and more additions to a cell, from several cores, gives varying bits."""
    if name.startswith("Adaptive"):
        geometry = adaptive((1, 1), [1, 20, 50], [1, 33, 333])
    else:
        geometry = windowed((1, 1), [1, 20, 2000], [1, 3, 3], [1, 1, 1], [0, 1, 1])
    rng = np.random.default_rng(10)
    case, _ = backward_case(rng, name, geometry, "float32", "int32", spreads=False)
    magnitudes = 2.0 ** rng.integers(-20, 20, size=geometry.output_shape)
    case.views["gradOutput"].array[...] = magnitudes * rng.standard_normal(geometry.output_shape)
    emulator = emulators[product]
    results: dict[int, set[bytes]] = {}
    for level in (0, 1, 2, 3):
        emulator.call("aclrtSetSysParamOpt", 0, level)
        for _ in range(10):
            outcome = case.run(emulator)
            assert outcome.route.endswith(f"atomic {int(level == 0)}")
            results.setdefault(min(level, 1), set()).add(case.views["gradInput"].storage.tobytes())
    emulator.call("aclrtSetSysParamOpt", 0, 0)
    assert len(results[0]) > 1
    assert len(results[1]) == 1
