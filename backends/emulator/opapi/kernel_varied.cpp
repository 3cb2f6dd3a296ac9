// A kernel built in another way: it collects the gradients of each cell and adds them in a chosen order, in a chosen
// precision. What it may return differs from the other kernels in the last bits alone.
#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <vector>

#include "../ascendcl/status.h"
#include "../ascendcl/variations.h"
#include "kernel.h"

namespace emulator {
namespace {

class Adder {
  public:
    Adder(const Problem& problem, const Route& route, const BackwardMemory& memory)
        : type_(problem.value),
          is_native_(variations.accumulation == Accumulation::kNative ||
                     (variations.accumulation == Accumulation::kOfRoute && route.algorithm == Template::kNative)),
          memory_(memory) {
        static std::atomic<uint32_t> launches{0};
        generator_.seed(problem.deterministic ? 0 : ++launches);
    }

    float sum(std::vector<int64_t>& positions) {
        if (variations.order == Order::kReverse) std::reverse(positions.begin(), positions.end());
        if (variations.order == Order::kRandom) std::shuffle(positions.begin(), positions.end(), generator_);
        if (variations.order == Order::kPairwise) return pairwise(positions, 0, positions.size());
        float total = 0.0f;
        for (const int64_t position : positions) total = added(total, memory_.gradient.load(position));
        return total;
    }

  private:
    float added(float a, float b) const { return is_native_ ? rounded_to(type_, a + b, memory_.saturate) : a + b; }

    float pairwise(const std::vector<int64_t>& positions, size_t begin, size_t end) const {
        if (begin == end) return 0.0f;
        if (end - begin == 1) return memory_.gradient.load(positions[begin]);
        const size_t middle = begin + (end - begin) / 2;
        return added(pairwise(positions, begin, middle), pairwise(positions, middle, end));
    }

    const aclDataType type_;
    const bool is_native_;
    const BackwardMemory& memory_;
    std::minstd_rand generator_;
};

// The window positions whose index is each cell of `plane`.
std::vector<std::vector<int64_t>> senders(const Problem& problem, const BackwardMemory& memory, int64_t plane) {
    std::vector<std::vector<int64_t>> positions(static_cast<size_t>(problem.cells()));
    for (int64_t window = 0; window < problem.windows(); ++window) {
        const int64_t position = problem.offset(plane, window, problem.windows());
        const int64_t index = memory.indices.load(position);
        if (is_in_plane(problem, index)) positions[static_cast<size_t>(index)].push_back(position);
    }
    return positions;
}

}  // namespace

int run_varied(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    Adder adder(problem, route, memory);
    for (int64_t plane = 0; plane < problem.planes(); ++plane) {
        auto positions = senders(problem, memory, plane);
        for (int64_t cell = 0; cell < problem.cells(); ++cell) {
            const float sum = adder.sum(positions[static_cast<size_t>(cell)]);
            memory.result.store(problem.offset(plane, cell, problem.cells()), sum, memory.saturate);
        }
    }
    return status::kSuccess;
}

}  // namespace emulator
