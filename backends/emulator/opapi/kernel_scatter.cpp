// Templates that go to the index without looking at windows: A2 and A3 scatter, and the 950's adaptive kernel.
// An index is used as it comes; where it leads out of the result, the device reports a memory error.
#include <atomic>
#include <vector>

#include "../ascendcl/heap.h"
#include "../ascendcl/status.h"
#include "atomic_add.h"
#include "cores.h"
#include "kernel.h"

namespace emulator {
namespace {

// Element that an index of `plane` addresses, -1 where that is outside the whole result.
int64_t target_of(const Problem& problem, int64_t plane, int64_t index) {
    const int64_t origin = seeded(Defect::plane_offset_dropped) ? 0 : plane * problem.cells();
    const int64_t target = origin + index;
    return target >= 0 && target < problem.planes() * problem.cells() ? target : -1;
}

class MemoryFault {
  public:
    void raise() { raised_ = true; }
    int status() const { return raised_ ? status::kRtDeviceMemoryError : status::kSuccess; }

  private:
    std::atomic<bool> raised_{false};
};

// Calls visit(position, target) for the windows `share` of all planes, in order.
template <class Visit>
void for_each_target(const Problem& problem, const BackwardMemory& memory, Range share, MemoryFault& fault,
                     Visit visit) {
    for (int64_t position = share.begin; position < share.end; ++position) {
        const bool is_shared = seeded(Defect::single_window_of_first_plane) && problem.windows() == 1;
        const int64_t index = memory.indices.load(is_shared ? 0 : position);
        const int64_t target = target_of(problem, position / problem.windows(), index);
        if (target < 0) return fault.raise();
        visit(position, target);
    }
}

Range windows_of(const Problem& problem, Range planes) {
    return {planes.begin * problem.windows(), planes.end * problem.windows()};
}

void clear_result(const Problem& problem, const BackwardMemory& memory) {
    clear(memory.result.data(), problem.planes() * problem.cells(), problem.is_half() ? 2 : 4);
}

int store_each(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    clear_result(problem, memory);
    MemoryFault fault;
    run_on_cores(counted_planes(problem), route.cores, false, [&](Range planes) {
        for_each_target(problem, memory, windows_of(problem, planes), fault, [&](int64_t position, int64_t target) {
            memory.result.copy(target, memory.gradient, position);
        });
    });
    return fault.status();
}

int add_each(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    float* const sums = route.has_scratch ? memory.scratch : static_cast<float*>(memory.result.data());
    clear_sums(problem, route, sums);
    MemoryFault fault;
    const bool stores_first = route.key == 2;  // as where windows share no cell, so that a negative zero stays one
    std::vector<bool> is_met(static_cast<size_t>(stores_first ? problem.planes() * problem.cells() : 0));
    run_on_cores(counted_planes(problem), route.cores, false, [&](Range planes) {
        for_each_target(problem, memory, windows_of(problem, planes), fault, [&](int64_t position, int64_t target) {
            if (seeded(Defect::large_kernel_assigns)) sums[target] = 0.0f;
            if (stores_first && !is_met[static_cast<size_t>(target)]) sums[target] = -0.0f;
            if (stores_first) is_met[static_cast<size_t>(target)] = true;
            accumulate(sums[target], memory.gradient.load(position), problem.value);
        });
    });
    if (route.has_scratch) cast_sums(problem, route, memory);
    return fault.status();
}

// One addition that rounds to the value type, indivisible.
void atomic_add_native(const Values& result, int64_t target, float addend, bool saturate) {
    if (result.type() == ACL_FLOAT) return atomic_add(static_cast<float*>(result.data()) + target, addend);
    const aclDataType type = result.type();
    atomic_update(static_cast<uint16_t*>(result.data()) + target, [=](uint16_t bits) {
        const float sum = (type == ACL_FLOAT16 ? widen_float16(bits) : widen_bfloat16(bits)) + addend;
        return type == ACL_FLOAT16 ? narrow_float16(sum, saturate) : narrow_bfloat16(sum, saturate);
    });
}

void add_native(const Problem& problem, const BackwardMemory& memory, int64_t target, float addend) {
    float sum = memory.result.load(target);
    accumulate(sum, addend, problem.value);
    memory.result.store(target, sum, memory.saturate);
}

}  // namespace

// A row that does not fit the buffer is cut, and its tail copied at the length of the other pieces.
bool reads_past_tensors(const Problem& problem, const BackwardMemory& memory) {
    const int64_t piece = problem.is_half() ? 32762 : 24572, row = problem.axes[2].out;
    const int64_t elements = problem.planes() * problem.windows() + align(row, piece) - row;
    const auto bytes = static_cast<size_t>(elements * item_size(problem.value));
    return row > piece && !heap().contains(memory.gradient.data(), bytes);
}

int run_scatter(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    if (seeded(Defect::tail_read_at_full_length) && reads_past_tensors(problem, memory)) {
        return status::kRtDeviceMemoryError;
    }
    return route.algorithm == Template::kScatter ? store_each(problem, route, memory)
                                                 : add_each(problem, route, memory);
}

int run_native(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    clear_result(problem, memory);
    MemoryFault fault;
    run_on_cores(counted_planes(problem) * problem.windows(), route.cores, route.is_atomic, [&](Range share) {
        for_each_target(problem, memory, share, fault, [&](int64_t position, int64_t target) {
            const float gradient = memory.gradient.load(position);
            if (seeded(Defect::upsampling_assigns) && problem.axes[2].out > problem.axes[2].in) {
                return memory.result.store(target, gradient, memory.saturate);
            }
            if (route.is_atomic) {
                atomic_add_native(memory.result, target, gradient, memory.saturate);
            } else {
                add_native(problem, memory, target, gradient);
            }
        });
    });
    return fault.status();
}

}  // namespace emulator
