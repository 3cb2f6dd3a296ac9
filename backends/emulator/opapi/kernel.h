// The kernels. All work on dense tensors; where a tensor is a strided view, the launch has copied it before.
#pragma once

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
void run_forward(const Problem& problem, const Route& route, const ForwardMemory& memory);

// One function per template.
void run_normal(const Problem& problem, const Route& route, const BackwardMemory& memory);
int run_scatter(const Problem& problem, const Route& route, const BackwardMemory& memory);
void run_tiled(const Problem& problem, const Route& route, const BackwardMemory& memory);
int run_native(const Problem& problem, const Route& route, const BackwardMemory& memory);

// Pools of one cell per window, with the mask of a bit per window.
void run_bits_forward(const Problem& problem, void* mask, const Values& input, const Values& output);
void run_bits_backward(const Problem& problem, void* mask, const Values& gradient, const Values& result);

struct Cell {
    int64_t d, h, w;
};

// Coordinates of a flat index in the unpadded plane.
inline Cell decode(const Problem& problem, int64_t index) {
    const int64_t height = problem.axes[1].in, width = problem.axes[2].in;
    return {index / (height * width), index / width % height, index % width};
}

inline bool is_in_plane(const Problem& problem, int64_t index) { return index >= 0 && index < problem.cells(); }

// Writes zeros into `count` elements of `size` bytes.
void clear(void* data, int64_t count, int64_t size);

// Clears the float32 sums, whose memory is a workspace or the result itself and never assumed clean.
void clear_sums(const Problem& problem, const Route& route, float* sums);

// Sums of the whole result, cast once into the result.
void cast_sums(const Problem& problem, const Route& route, const BackwardMemory& memory);

}  // namespace emulator
