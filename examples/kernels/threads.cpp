// The backward of max pooling by the threads of 950: they clear grad_input together, and then each takes a window and adds
// its gradient to its cell atomically. Where the order matters a thread takes all windows of a plane, one after another.
#include "common.h"
#include "simt_api/asc_simt.h"

struct ThreadsTiling {
    uint64_t planes;
    uint64_t cells;    // of a plane
    uint64_t windows;  // of a plane
    uint64_t together; // windows that one thread takes
};

constexpr uint32_t THREADS = 128;

__simt_vf__ __aicore__ LAUNCH_BOUND(THREADS) inline void Clear(__gm__ float* y, uint64_t cells)
{
    for (uint64_t cell = blockIdx.x * blockDim.x + threadIdx.x; cell < cells; cell += gridDim.x * blockDim.x) {
        y[cell] = 0.0f;
    }
}

__simt_vf__ __aicore__ LAUNCH_BOUND(THREADS) inline void AddWindows(__gm__ float* y, __gm__ float* grad,
                                                                   __gm__ int32_t* argmax, ThreadsTiling tiling)
{
    const uint64_t units = tiling.planes * tiling.windows / tiling.together;
    for (uint64_t unit = blockIdx.x * blockDim.x + threadIdx.x; unit < units; unit += gridDim.x * blockDim.x) {
        for (uint64_t window = unit * tiling.together; window < (unit + 1) * tiling.together; ++window) {
            __gm__ float* cell = y + window / tiling.windows * tiling.cells + argmax[window];
            asc_atomic_add(cell, grad[window]);
        }
    }
}

extern "C" __global__ __aicore__ void max_pool_backward_threads(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y,
                                                                GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    asc_vf_call<Clear>(dim3(THREADS), reinterpret_cast<__gm__ float*>(y), data.planes * data.cells);
    AscendC::SyncAll();
    asc_vf_call<AddWindows>(dim3(THREADS), reinterpret_cast<__gm__ float*>(y), reinterpret_cast<__gm__ float*>(grad),
                            reinterpret_cast<__gm__ int32_t*>(argmax), data);
}
