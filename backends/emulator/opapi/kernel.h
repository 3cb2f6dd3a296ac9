// The kernels. All work on dense tensors; where a tensor is a strided view, the launch has copied it before.
#pragma once

#include <algorithm>

#include "numeric.h"
#include "route.h"

namespace emulator {

struct BackwardMemory {
    Values gradient;
    Indices indices;
    Values result;
    float* scratch = nullptr;  // float32 sums of the whole result, where the route has them
    bool saturate = false;
};

struct ForwardMemory {
    Values input;
    Values output;
    Indices indices;
};

// Success, or the status of a device exception.
int run_backward(const Problem& problem, const Route& route, const BackwardMemory& memory);
int run_forward(const Problem& problem, const Route& route, const ForwardMemory& memory);

// One function per template.
void run_normal(const Problem& problem, const Route& route, const BackwardMemory& memory);
int run_scatter(const Problem& problem, const Route& route, const BackwardMemory& memory);
void run_tiled(const Problem& problem, const Route& route, const BackwardMemory& memory);
int run_varied(const Problem& problem, const Route& route, const BackwardMemory& memory);
int run_native(const Problem& problem, const Route& route, const BackwardMemory& memory);

// Pools of one cell per window, with the mask of a bit per window.
void run_bits_forward(const Problem& problem, void* mask, const Values& input, const Values& output);
void run_bits_backward(const Problem& problem, void* mask, const Values& gradient, const Values& result);

struct Cell {
    int64_t d, h, w;
};

// Where a defect leads out of the plane, back into it: what it then hits is wrong, not foreign memory.
inline Cell wrapped(const Problem& problem, const Cell& cell) {
    return {cell.d % problem.axes[0].in, cell.h % problem.axes[1].in, cell.w % problem.axes[2].in};
}

// The row by a multiplication with the rounded reciprocal of the width, as where a vector unit has no division.
inline Cell decode_by_reciprocal(const Problem& problem, int64_t index) {
    const int64_t width = problem.axes[2].in;
    const float reciprocal = 1.0f / static_cast<float>(width);
    const auto row = static_cast<int64_t>(static_cast<float>(index) * reciprocal);
    return wrapped(problem,
                   {row / problem.axes[1].in, row % problem.axes[1].in, std::max<int64_t>(index - row * width, 0)});
}

// Coordinates of a flat index in the unpadded plane.
inline Cell decode(const Problem& problem, int64_t index) {
    int64_t height = problem.axes[1].in, width = problem.axes[2].in;
    if (seeded(Defect::reciprocal_row_division)) return decode_by_reciprocal(problem, index);
    if (seeded(Defect::decode_by_output_width)) width = problem.axes[2].out;
    if (seeded(Defect::decode_by_padded_width)) width += 2 * problem.axes[2].padding;
    if (seeded(Defect::extents_exchanged)) std::swap(height, width);
    const Cell cell = {index / (height * width), index / width % height, index % width};
    return has_defects ? wrapped(problem, cell) : cell;
}

// Planes that begin before some element of the tensor.
inline int64_t planes_before(const Problem& problem, int64_t element) {
    const int64_t cells = std::max<int64_t>(problem.cells(), 1);
    return std::min(problem.planes(), (element + cells - 1) / cells);
}

// Planes that a kernel works through: all of them.
inline int64_t counted_planes(const Problem& problem) {
    const int64_t wide = problem.planes() % 32 - 16;  // what the last 32 lanes hold beyond their first half
    if (seeded(Defect::wide_lanes_halved) && wide > 0) return problem.planes() - wide;
    if (seeded(Defect::planes_lost_past_2_20)) return planes_before(problem, int64_t{1} << 20);
    if (seeded(Defect::planes_lost_past_2_24)) return planes_before(problem, int64_t{1} << 24);
    return seeded(Defect::uint16_plane_counter) ? static_cast<uint16_t>(problem.planes()) : problem.planes();
}

inline bool is_in_plane(const Problem& problem, int64_t index) { return index >= 0 && index < problem.cells(); }

// Writes zeros into `count` elements of `size` bytes.
void clear(void* data, int64_t count, int64_t size);

// Clears the float32 sums, whose memory is a workspace or the result itself and never assumed clean.
void clear_sums(const Problem& problem, const Route& route, float* sums);

// Sums of the whole result, cast once into the result.
void cast_sums(const Problem& problem, const Route& route, const BackwardMemory& memory);

}  // namespace emulator
