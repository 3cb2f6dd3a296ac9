// Forward routes, after the tilings of the library. They differ in name only: one kernel computes them all.
#include <limits>

#include "../ascendcl/product.h"
#include "../ascendcl/text.h"
#include "call.h"
#include "route.h"

namespace emulator {
namespace {

struct Choice {
    const char* op;
    const char* name;
    int64_t key = kUnknownKey;
};

int64_t kernel_volume(const Problem& problem) {
    return problem.axes[0].kernel * problem.axes[1].kernel * problem.axes[2].kernel;
}

int64_t largest_window(const Problem& problem) {
    return problem.axes[0].largest_window() * problem.axes[1].largest_window() * problem.axes[2].largest_window();
}

int64_t row_bytes(const Problem& problem) { return problem.axes[2].kernel * (problem.is_half() ? 2 : 4); }

bool takes_every_cell(const Problem& problem) {
    return std::all_of(problem.axes.begin(), problem.axes.end(),
                       [](const Axis& axis) { return axis.kernel == 1 && axis.stride == 1; });
}

// One window of 64 planes with its copies must fit the buffer for the small-window kernel.
Choice windowed_220(const Problem& problem) {
    constexpr int64_t kBytesPerElement = 64 * 4 * 2;
    const bool is_small = kernel_volume(problem) * kBytesPerElement <= product().buffer_bytes;
    if (!is_small) return {"MaxPool3DWithArgmaxV2", "big kernel"};
    return {"MaxPool3DWithArgmaxV2", "small kernel", problem.is_padded() ? 300002 : 300001};
}

Choice windowed_950_3d(const Problem& problem) {
    constexpr const char* kOp = "MaxPool3DWithArgmaxV2";
    const bool direct = !problem.is_dilated() && !problem.channels_last;
    const bool many_planes = problem.planes() >= 3072 && problem.windows() >= 32;
    if (direct && takes_every_cell(problem)) return {kOp, "kernel of one", 700001};
    if (direct && !problem.is_padded() && kernel_volume(problem) <= 128 && many_planes)
        return {kOp, "transpose", 500001};
    if (direct && row_bytes(problem) < 128) return {kOp, "gather", problem.is_padded() ? 400002 : 400001};
    if (direct) return {kOp, "big kernel"};
    return {kOp, "simt", problem.channels_last ? 600002 : 600001};
}

Choice windowed_950_2d(const Problem& problem) {
    constexpr const char* kOp = "MaxPoolWithArgmaxV3";
    if (problem.is_dilated()) return {kOp, "simt", problem.channels_last ? 500002 : 500001};
    if (problem.channels_last) return {kOp, "channels last"};
    if (row_bytes(problem) < 128) return {kOp, "gather", problem.is_padded() ? 300002 : 300001};
    return {kOp, "big kernel", 311110};
}

Choice adaptive_220(const Problem& problem) {
    const Axis& width = problem.axes[2];
    const int64_t rows = problem.axes[0].largest_window() * problem.axes[1].largest_window();
    const bool is_small = rows * align(width.largest_window(), 8) < 128 && width.largest_window() <= 16;
    return {"AdaptiveMaxPool3d", is_small ? "small pool" : "big pool"};
}

Choice adaptive_950_3d(const Problem& problem) {
    const int64_t volume = largest_window(problem);
    const int64_t outputs = problem.planes() * problem.windows();
    const bool is_big = volume >= 1024 || (volume >= 256 && outputs < 10240) || (volume >= 128 && outputs < 5120);
    const bool is_parallel = volume < 128 && problem.planes() >= (problem.is_half() ? 64 : 32);
    return {"AdaptiveMaxPool3d", is_parallel ? "parallel" : is_big ? "big kernel" : "simt"};
}

Choice adaptive(const Problem& problem, int spatial_rank) {
    if (problem.value == ACL_DOUBLE) return {"AdaptiveMaxPool2d", "aicpu"};
    if (spatial_rank == 2 && !problem.overlaps()) return {"MaxPool3DWithArgmaxV2", "divisible"};
    if (!product().is_950) return adaptive_220(problem);
    return spatial_rank == 2 ? Choice{"AdaptiveMaxPool2d", "simt"} : adaptive_950_3d(problem);
}

Choice choose(const Call& call, const Problem& problem) {
    const int rank = call.family->spatial_rank;
    if (call.family->is_adaptive) return adaptive(problem, rank);
    if (!product().is_950) return windowed_220(problem);
    return rank == 3 ? windowed_950_3d(problem) : windowed_950_2d(problem);
}

}  // namespace

Route route_forward(const Call& call, const Problem& problem) {
    const Choice choice = choose(call, problem);
    Route route;
    route.op = choice.op;
    route.name = choice.name;
    route.key = choice.key;
    route.cores = std::min<int64_t>(product().vector_cores, problem.planes() * problem.windows());
    return route;
}

Route route_bits(const Call& call) {
    Route route;
    route.op = call.family->is_backward ? "MaxPoolGradWithArgmaxV1" : "MaxPoolWithArgmaxV1";
    route.name = "bit mask";
    route.algorithm = Template::kBits;
    return route;
}

std::string Route::describe() const {
    const std::string number = key == kUnknownKey ? "unknown" : text(key);
    return text(op, ": ", name, "; key ", number, "; cores ", cores, "; split ", split_axes, "; planes ",
                planes_per_block, "; tile ", tile[0], "x", tile[1], "x", tile[2], "; scratch ", has_scratch,
                "; atomic ", is_atomic);
}

}  // namespace emulator
