// Backward routes of A2 and A3, after the tilings of the library: cut kernel, normal, scatter.
#include <numeric>

#include "../ascendcl/defects.h"
#include "../ascendcl/product.h"
#include "cores.h"
#include "route.h"

namespace emulator {
namespace {

// Planes lie side by side in the vector lanes; few planes, or planes that would not fit otherwise, use the short block.
constexpr int64_t kLanes = 64;
constexpr int64_t kShortLanes = 16;

// Bytes of the buffer that the normal templates keep for themselves, besides what grows with the tile.
constexpr int64_t kReserve = 8192;
constexpr int64_t kBlockBytes = 32;

using Tile = std::array<int64_t, kAxes>;

// Input length under `windows` adjoining windows of an axis.
int64_t extent(const Axis& axis, int64_t windows) {
    if (axis.adaptive) return axis.largest_window() + (windows - 1) * ceil_divide(axis.in, axis.out);
    return (windows - 1) * axis.stride + axis.dilated_kernel();
}

// Buffer bytes for a tile of windows of `lanes` planes (of an adaptive pool, with the lists of one): the sums twice (as
// added and as moved), a mask, and twice the gradients and indices. Half precision without overlap holds its sums as
// moved in the value type.
int64_t tile_bytes(const Problem& problem, int64_t lanes, const Tile& tile, bool overlaps) {
    const auto& axes = problem.axes;
    const int64_t bytes = problem.is_half() ? 2 : 4, block = kBlockBytes / bytes;
    const int64_t rows = extent(axes[0], tile[0]) * extent(axes[1], tile[1]);
    const int64_t width = extent(axes[2], tile[2]);
    const int64_t windows = axes[0].adaptive ? 1 : tile[0] * tile[1] * tile[2];
    const int64_t gradients = 2 * lanes * align(windows, block) * bytes;
    if (axes[0].adaptive) {
        const int64_t sums = lanes * (8 * rows * align(width, 8) + 8 * rows * width) + kBlockBytes * rows * width;
        return sums + gradients + 7 * lanes * align(windows, 8) * 4;
    }
    const int64_t lists = align(lanes * windows, kBlockBytes) + 8 * lanes * align(windows, 8) + gradients;
    const int64_t moved = overlaps ? 8 * align(width, 8) : (4 + bytes) * align(width, block);
    return lanes * rows * (4 * width + moved) + lists;
}

bool fits(const Problem& problem, int64_t lanes, const Tile& tile, bool overlaps) {
    return tile_bytes(problem, lanes, tile, overlaps) <= product().buffer_bytes - kReserve;
}
bool fits(const Problem& problem, int64_t lanes, const Tile& tile) {
    return fits(problem, lanes, tile, problem.overlaps());
}

Tile all_windows(const Problem& problem) { return {problem.axes[0].out, problem.axes[1].out, problem.axes[2].out}; }

// Cuts D, then H, then W until a tile of at least one window fits.
Tile largest_fitting(const Problem& problem, int64_t lanes, Tile tile) {
    for (int64_t& length : tile) {
        while (length > 1 && !fits(problem, lanes, tile)) length = ceil_divide(length, 2);
    }
    return tile;
}

int64_t lanes_for(const Problem& problem) {
    const Tile everything = all_windows(problem);
    const bool is_full = problem.planes() >= kLanes && problem.planes() < kLanes * product().vector_cores;
    const bool fits_long = fits(problem, kLanes, everything) && fits(problem, kLanes, everything, false);
    if ((is_full && !problem.overlaps()) || fits_long) return kLanes;
    const int64_t lanes = problem.planes() <= kLanes - kShortLanes ? align(problem.planes(), kShortLanes) : kLanes;
    return fits(problem, lanes, everything) ? lanes : kShortLanes;
}

// Cuts the windows further, D first, until every core has a tile.
Tile feed_cores(const Problem& problem, int64_t blocks, Tile tile) {
    int64_t units = blocks;
    for (int axis = 0; axis < kAxes; ++axis) {
        const int64_t wanted = ceil_divide(product().vector_cores, units);
        tile[axis] = std::min(tile[axis], ceil_divide(problem.axes[axis].out, wanted));
        units *= ceil_divide(problem.axes[axis].out, tile[axis]);
    }
    return tile;
}

int64_t units_of(const Problem& problem, const Route& route) {
    const Grid grid(problem.planes(), route.planes_per_block, all_windows(problem), route.tile);
    int64_t units = grid.blocks();
    for (int axis = 0; axis < route.split_axes; ++axis) units *= grid.tiles(axis);
    return units;
}

// With determinism on, windows that overlap stay on one core, whatever that leaves idle.
bool may_split(const Problem& problem, bool is_whole) {
    if (!problem.overlaps()) return true;
    if (is_whole) return false;
    return !problem.deterministic || seeded(Defect::determinism_ignored);
}

Route normal(const Problem& problem) {
    Route route;
    route.algorithm = Template::kNormal;
    route.drops_foreign = true;
    route.planes_per_block = lanes_for(problem);
    const Tile everything = all_windows(problem);
    const bool is_whole = fits(problem, route.planes_per_block, everything, false);
    route.tile = is_whole ? everything : largest_fitting(problem, route.planes_per_block, everything);
    if (may_split(problem, is_whole)) {
        route.tile = feed_cores(problem, ceil_divide(problem.planes(), route.planes_per_block), route.tile);
        route.split_axes = kAxes;
    } else if (seeded(Defect::slices_cut_despite_determinism) && !is_whole &&
               units_of(problem, route) * problem.axes[0].out < product().vector_cores) {
        route.tile[0] = 1;
        route.split_axes = 1;
    }
    const bool adds_tiles = problem.overlaps() && !is_whole;
    route.name = adds_tiles ? "normal overlap" : "normal";
    route.key = adds_tiles ? 100 : 0;
    route.has_scratch = adds_tiles && problem.is_half();
    route.cores = std::min<int64_t>(product().vector_cores, units_of(problem, route));
    route.is_atomic = adds_tiles && route.split_axes > 0 && route.cores > 1;
    return route;
}

// The library's tiling asks the kernel without its dilation; the key says what it answers, the template what is right.
bool adds_by_key(const Problem& problem) {
    return std::any_of(problem.axes.begin(), problem.axes.end(),
                       [](const Axis& axis) { return axis.adaptive ? axis.overlaps() : axis.kernel > axis.stride; });
}

Route scatter(const Problem& problem) {
    Route route;
    const bool overlaps = problem.overlaps();
    route.algorithm = overlaps ? Template::kScatterOverlap : Template::kScatter;
    route.name = overlaps ? "scatter overlap" : "scatter";
    route.key = adds_by_key(problem) ? 102 : 2;
    route.has_scratch = overlaps && problem.is_half();
    route.cores = std::min<int64_t>(product().vector_cores, problem.planes());
    return route;
}

// The one geometry for which the library has kernels that cut the window itself.
bool is_cut_kernel_geometry(const Problem& problem) {
    constexpr int64_t kMostPlanes = 64 * 48;
    constexpr Tile kOut = {1, 6, 8}, kKernel = {5, 1, 6}, kStride = {8, 13, 18};
    for (int axis = 0; axis < kAxes; ++axis) {
        const Axis& a = problem.axes[axis];
        if (a.out != kOut[axis] || a.kernel != kKernel[axis] || a.stride != kStride[axis] || a.dilation != 1)
            return false;
    }
    return problem.planes() <= kMostPlanes;
}

Route cut_kernel(const Problem& problem) {
    Route route = normal(problem);
    route.name = "cut kernel";
    route.key = 31;
    route.kernel_slab = 1;
    return route;
}

}  // namespace

Route route_220_windowed(const Problem& problem) {
    Route route;
    if (is_cut_kernel_geometry(problem)) {
        route = cut_kernel(problem);
    } else {
        route = problem.is_dilated() || !fits(problem, kLanes, {1, 1, 1}) ? scatter(problem) : normal(problem);
    }
    route.op = "MaxPool3DGradWithArgmax";
    return route;
}

// D is cut where windows end together, so that cores never share a cell and the result has one order.
Route route_220_adaptive(const Problem& problem) {
    Route route;
    if (!fits(problem, kLanes, {1, 1, 1})) {
        route = scatter(problem);
    } else {
        const Axis& depth = problem.axes[0];
        const int64_t segment = depth.out / std::gcd(depth.in, depth.out);
        route.algorithm = Template::kNormal;
        route.name = problem.overlaps() ? "normal overlap" : "normal";
        route.key = problem.overlaps() ? 100 : 0;
        route.drops_foreign = true;
        route.has_scratch = problem.overlaps() && problem.is_half();
        route.planes_per_block = lanes_for(problem);
        route.tile =
            largest_fitting(problem, route.planes_per_block, {segment, problem.axes[1].out, problem.axes[2].out});
        route.split_axes = route.tile[0] == segment ? 1 : 0;
        route.cores = std::min<int64_t>(product().vector_cores, units_of(problem, route));
    }
    route.op = "AdaptiveMaxPool3DGrad";
    return route;
}

}  // namespace emulator
