// What several backward templates share: clearing, the final cast, and the choice of the template.
#include <cstring>

#include "../ascendcl/product.h"
#include "../ascendcl/status.h"
#include "../ascendcl/variations.h"
#include "cores.h"
#include "kernel.h"

namespace emulator {

void clear(void* data, int64_t count, int64_t size) {
    constexpr int64_t kBlock = 16;
    if (seeded(Defect::unwritten_tail)) count = count / kBlock * kBlock;
    if (seeded(Defect::uneven_share_not_cleared)) count = count / product().vector_cores * product().vector_cores;
    std::memset(data, 0, static_cast<size_t>(count * size));
}

void clear_sums(const Problem& problem, const Route& route, float* sums) {
    if (route.has_scratch && seeded(Defect::unclean_workspace)) return;
    if (!route.has_scratch && seeded(Defect::previous_result_added)) return;
    clear(sums, problem.planes() * problem.cells(), sizeof(float));
}

void cast_sums(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    run_on_cores(problem.planes() * problem.cells(), route.cores, false, [&](Range share) {
        for (int64_t i = share.begin; i < share.end; ++i) memory.result.store(i, memory.scratch[i], memory.saturate);
    });
}

namespace {

// Kernel and stride of one: every cell is its own window, and what the indices say does not matter.
int run_copy(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    run_on_cores(problem.planes() * problem.cells(), route.cores, false, [&](Range share) {
        for (int64_t i = share.begin; i < share.end; ++i) {
            // A gradient that is smaller than the result starts over where it ends.
            const bool is_smaller = seeded(Defect::unit_kernel_ignores_stride);
            memory.result.copy(i, memory.gradient, is_smaller ? i % (problem.planes() * problem.windows()) : i);
        }
    });
    return status::kSuccess;
}

}  // namespace

int run_backward(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    const bool adds = route.algorithm != Template::kCopy && route.algorithm != Template::kScatter;
    if (seeded(Defect::merged_key_missing) && route.key == 502) return status::kSuccess;
    if (variations.changes_sums() && adds) return run_varied(problem, route, memory);
    switch (route.algorithm) {
        case Template::kNormal: run_normal(problem, route, memory); return status::kSuccess;
        case Template::kTiled: run_tiled(problem, route, memory); return status::kSuccess;
        case Template::kCopy: return run_copy(problem, route, memory);
        case Template::kNative: return run_native(problem, route, memory);
        default: return run_scatter(problem, route, memory);
    }
}

}  // namespace emulator
