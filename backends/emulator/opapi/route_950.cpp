// Backward routes of the 950, after the tilings of the library: SIMD and SIMT for 3-D, the V3 family for 2-D.
#include <limits>

#include "../ascendcl/product.h"
#include "cores.h"
#include "route.h"

namespace emulator {
namespace {

using Tile = std::array<int64_t, kAxes>;

constexpr int64_t kVectorBytes = 256;
constexpr int64_t kAccumulatorBytes = 4;

// The SIMT templates take no buffer; a block of threads handles that many input cells at a time.
constexpr int64_t kSimtCells = 65536;

// The V3 SIMT template serves small windows over small outputs.
constexpr int64_t kSimtMost = 256;

Tile all_cells(const Problem& problem) { return {problem.axes[0].in, problem.axes[1].in, problem.axes[2].in}; }

int64_t value_bytes(const Problem& problem) { return problem.is_half() ? 2 : 4; }
int64_t index_bytes(const Problem& problem) { return problem.index == ACL_INT64 ? 8 : 4; }

// Windows that can look into `cells` adjoining cells of an axis.
int64_t windows_over(const Axis& axis, int64_t cells) {
    return std::min(axis.out, ceil_divide(cells + axis.dilated_kernel() - 1, axis.stride) + 1);
}

// Buffer bytes for a tile of cells of one plane: sums and result, and twice (for the transfer that runs ahead) the
// gradients and indices of all windows over the tile. Rows are padded to whole 32-byte blocks.
int64_t tile_bytes(const Problem& problem, const Tile& tile) {
    const int64_t block = 32 / value_bytes(problem);
    const int64_t sums = tile[0] * tile[1] * align(tile[2], block);
    const int64_t windows = windows_over(problem.axes[0], tile[0]) * windows_over(problem.axes[1], tile[1]) *
                            align(windows_over(problem.axes[2], tile[2]), block);
    return sums * (kAccumulatorBytes + value_bytes(problem)) +
           2 * windows * (value_bytes(problem) + index_bytes(problem));
}

bool tiles_fit(const Problem& problem, int64_t planes, const Tile& tile) {
    return planes * tile_bytes(problem, tile) <= product().buffer_bytes;
}

// The least that a SIMD template needs: one vector of one row, with the windows over it.
Tile one_vector(const Problem& problem) {
    return {1, 1, std::min(problem.axes[2].in, kVectorBytes / kAccumulatorBytes)};
}

// Cuts D, then H, then W until `planes` tiles fit. Lengths stay multiples of the stride, so that windows which do
// not overlap are not cut.
Tile largest_fitting(const Problem& problem, int64_t planes) {
    Tile tile = all_cells(problem);
    for (int axis = 0; axis < kAxes; ++axis) {
        const int64_t stride = std::min(problem.axes[axis].stride, problem.axes[axis].in);
        while (tile[axis] > stride && !tiles_fit(problem, planes, tile)) {
            tile[axis] = std::min(tile[axis] - 1, align(ceil_divide(tile[axis], 2), stride));
        }
    }
    return tile;
}

// Cuts the cells further until every core has a tile.
Tile spread_over_cores(const Problem& problem, int64_t blocks, Tile tile) {
    int64_t units = blocks;
    for (int axis = 0; axis < kAxes; ++axis) {
        const int64_t wanted = ceil_divide(product().vector_cores, units);
        const int64_t stride = std::min(problem.axes[axis].stride, problem.axes[axis].in);
        tile[axis] = std::min(tile[axis], align(ceil_divide(problem.axes[axis].in, wanted), stride));
        units *= ceil_divide(problem.axes[axis].in, tile[axis]);
    }
    return tile;
}

void set_cores(const Problem& problem, Route& route) {
    const Grid grid(problem.planes(), route.planes_per_block, all_cells(problem), route.tile);
    route.cores = std::min<int64_t>(product().vector_cores, grid.blocks() * grid.tiles());
}

// Whole planes per core, when the plane fits and, of channels last, there are planes enough; else pieces of planes.
bool loads_whole_planes(const Problem& problem) { return tiles_fit(problem, 1, all_cells(problem)); }

void set_tile(const Problem& problem, Route& route) {
    route.algorithm = Template::kTiled;
    route.split_axes = kAxes;
    if (problem.channels_last) route.planes_per_block = problem.channels;
    route.tile = largest_fitting(problem, route.planes_per_block);
    const int64_t blocks = ceil_divide(problem.planes(), route.planes_per_block);
    if (!loads_whole_planes(problem) || (problem.channels_last && blocks < product().vector_cores)) route.tile = spread_over_cores(problem, blocks, route.tile);
    set_cores(problem, route);
}

Route simt(const Problem& problem, const char* name, int64_t key) {
    Route route;
    route.name = name;
    route.key = key;
    route.algorithm = Template::kTiled;
    route.drops_foreign = true;
    route.split_axes = kAxes;
    const Axis& width = problem.axes[2];
    const int64_t rows = std::max<int64_t>(1, kSimtCells / width.in);
    route.tile = {1, std::min(rows, problem.axes[1].in), std::min(width.in, kSimtCells)};
    set_cores(problem, route);
    return route;
}

bool passes_int32(int64_t count) { return count > std::numeric_limits<int32_t>::max(); }

bool overhangs(const Axis& axis) { return (axis.out - 1) * axis.stride + axis.dilated_kernel() > axis.in; }

// Whether no window can cross the border of a tile: none overlap, none hang over, and there are windows enough to
// give every core some of its own.
bool splits_between_windows(const Problem& problem, int64_t blocks) {
    const bool is_clean = !problem.overlaps() && !problem.is_padded();
    return is_clean && blocks * problem.windows() >= product().vector_cores;
}

// Whether the V3 tilings keep the range check.
bool checks_range(const Problem& problem, int64_t blocks) {
    if (blocks >= product().vector_cores && loads_whole_planes(problem)) return false;
    return overhangs(problem.axes[1]) || overhangs(problem.axes[2]) || !splits_between_windows(problem, blocks);
}

// The library's V3 tilings ask the kernel without its dilation; the key says what they answer.
Problem undilated(Problem problem) {
    for (Axis& axis : problem.axes) axis.dilation = 1;
    return problem;
}

bool covers_all(const Axis& axis) { return ceil_divide(axis.kernel, axis.stride) >= axis.out; }

Route v3_channels_last(const Problem& problem) {
    Route route;
    set_tile(problem, route);
    const int64_t lanes = kVectorBytes / index_bytes(problem);
    const int64_t row = problem.channels * problem.axes[2].out;
    if (lanes >= 2 * row) {
        route.name = "channels last, merged height";
        route.lanes = Lanes::kHeightWidthChannel;
        route.key = 501;
    } else if (lanes >= 2 * problem.channels) {
        route.name = "channels last, merged width";
        route.lanes = Lanes::kWidthChannel;
        route.key = 600;
    } else {
        route.name = "channels last, many channels";
        route.lanes = Lanes::kChannel;
        route.key = 700;
    }
    route.key += checks_range(undilated(problem), problem.batch) ? 1 : 0;
    return route;
}

// Parts of rows, then of columns, of a plane whose windows cross the borders of tiles: as many as give every core one
// that fits. A vector of a row is not cut.
Tile unaligned(const Problem& problem) {
    const int64_t lanes = kVectorBytes / index_bytes(problem);
    Tile tile = all_cells(problem);
    int64_t rows = 1, columns = 1;
    while (tile[1] != 1 || tile[2] > lanes) {
        const Grid grid(problem.planes(), 1, all_cells(problem), tile);
        if (grid.blocks() * grid.tiles() >= product().vector_cores && tiles_fit(problem, 1, tile)) return tile;
        const int axis = tile[1] > 1 ? 1 : 2;
        tile[axis] = ceil_divide(problem.axes[axis].in, ++(axis == 1 ? rows : columns));
    }
    tile[2] = std::min(problem.axes[2].in, lanes);
    return tile;
}

Route v3_vector(const Problem& problem) {
    Route route;
    set_tile(problem, route);
    route.name = "vector";
    route.lanes = Lanes::kHeightWidth;
    route.key = 100;
    if (checks_range(undilated(problem), problem.planes())) {
        route.key = 101;
        route.tile = unaligned(problem);
        set_cores(problem, route);
    }
    if (passes_int32(problem.cells()) && problem.index == ACL_INT64) route.key += 10;
    return route;
}

Route v3_scalar(const Problem& problem) {
    Route route;
    set_tile(problem, route);
    route.name = "scalar";
    route.key = 301;
    return route;
}

Route v3_copy() {
    Route route;
    route.name = "kernel of one";
    route.key = 800;
    route.algorithm = Template::kCopy;
    route.cores = product().vector_cores;
    return route;
}

bool is_kernel_of_one(const Problem& problem) {
    return std::all_of(problem.axes.begin(), problem.axes.end(), [](const Axis& axis) {
        return axis.kernel == 1 && (axis.stride == 1 || seeded(Defect::unit_kernel_ignores_stride));
    });
}

Route v3(const Problem& problem) {
    const Axis &height = problem.axes[1], &width = problem.axes[2];
    if (is_kernel_of_one(problem)) return v3_copy();
    const int64_t most = seeded(Defect::simt_count_wraps) ? kSimtMost + 1 : kSimtMost;
    const bool is_small = height.kernel * width.kernel < kSimtMost && height.out * width.out < most;
    if (!problem.channels_last && is_small) {
        return simt(problem, "simt", passes_int32(problem.planes() * problem.cells()) ? 901 : 900);
    }
    if (problem.channels_last) return v3_channels_last(problem);
    const bool is_vector = !(covers_all(height) && covers_all(width)) && tiles_fit(problem, 1, one_vector(problem));
    return is_vector ? v3_vector(problem) : v3_scalar(problem);
}

Route simd(const Problem& problem) {
    Route route;
    set_tile(problem, route);
    route.lanes = Lanes::kWidth;
    if (loads_whole_planes(problem)) {
        route.name = "simd, whole planes";
        route.key = 2049;
    } else {
        const bool is_aligned = splits_between_windows(problem, problem.planes());
        route.name = is_aligned ? "simd, aligned" : "simd, unaligned";
        route.key = is_aligned ? 1 : 1025;
    }
    return route;
}

}  // namespace

Route route_950_windowed_3d(const Problem& problem) {
    const bool is_large = passes_int32(problem.planes() * problem.cells());
    const bool takes_simd = !is_large && tiles_fit(problem, 1, one_vector(problem));
    Route route = takes_simd ? simd(problem) : simt(problem, "simt", is_large ? 258 : kUnknownKey);
    route.op = "MaxPool3DGradWithArgmax";
    return route;
}

Route route_950_windowed_2d(const Problem& problem) {
    Route route = v3(problem);
    route.op = "MaxPoolGradWithArgmaxV3";
    return route;
}

// Threads over the outputs; with determinism on and overlapping windows one thread serves a whole plane.
Route route_950_adaptive(const Problem& problem) {
    Route route;
    route.op = "AdaptiveMaxPool3DGrad";
    route.name = problem.overlaps() ? "simt atomic" : "simt";
    route.key = problem.index == ACL_INT64 ? 32 : 16;
    route.algorithm = Template::kNative;
    const bool serial = problem.overlaps() && problem.deterministic && !seeded(Defect::determinism_ignored);
    route.is_atomic = problem.overlaps() && !serial;
    const int64_t units = serial ? problem.planes() : problem.planes() * problem.windows();
    route.cores = std::min<int64_t>(product().vector_cores, units);
    if (serial) route.name = "simt serial";
    return route;
}

}  // namespace emulator
