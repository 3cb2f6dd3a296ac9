// A2 and A3, normal and cut kernel templates: a core takes a tile of windows of a block of planes, places every
// gradient by comparing its index with the positions of its window, sums in the buffer, and flushes the sums.
#include <vector>

#include "atomic_add.h"
#include "cores.h"
#include "kernel.h"

namespace emulator {
namespace {

class NormalKernel {
  public:
    NormalKernel(const Problem& problem, const Route& route, const BackwardMemory& memory)
        : problem_(problem),
          route_(route),
          memory_(memory),
          grid_(problem.planes(), route.planes_per_block, visited(), route.tile) {}

    int64_t units() const { return grid_.blocks() * outer_tiles(); }

    void run(Range share) const {
        for (int64_t unit = share.begin; unit < share.end; ++unit) {
            const Range planes = grid_.planes(unit / outer_tiles());
            for (int64_t inner = 0; inner < inner_tiles(); ++inner) {
                const Box windows = grid_.box(unit % outer_tiles() * inner_tiles() + inner);
                for (int64_t plane = planes.begin; plane < planes.end; ++plane) run_tile(plane, windows);
            }
        }
    }

    // The sums in global memory: the scratch area, or a float32 result itself; null where tiles are cast directly.
    float* sums() const {
        if (route_.has_scratch) return memory_.scratch;
        return problem_.is_half() ? nullptr : static_cast<float*>(memory_.result.data());
    }

  private:
    std::array<int64_t, kAxes> visited() const {
        return {problem_.axes[0].visited(), problem_.axes[1].visited(), problem_.axes[2].visited()};
    }

    // Tiles of the axes that are cut across cores, and of those that are cut within one.
    int64_t outer_tiles() const {
        int64_t count = 1;
        for (int axis = 0; axis < route_.split_axes; ++axis) count *= grid_.tiles(axis);
        return count;
    }
    int64_t inner_tiles() const { return grid_.tiles() / outer_tiles(); }

    void run_tile(int64_t plane, const Box& windows) const {
        Box cells;
        for (int axis = 0; axis < kAxes; ++axis) cells[axis] = problem_.axes[axis].cells_under(windows[axis]);
        std::vector<float> buffer(static_cast<size_t>(cells[0].size() * cells[1].size() * cells[2].size()), 0.0f);
        const int64_t slab = route_.kernel_slab == 0 ? problem_.axes[0].in : route_.kernel_slab;
        for (int64_t tap = 0; tap < problem_.axes[0].largest_window(); tap += slab) {
            place_windows(plane, windows, cells, {tap, tap + slab}, buffer.data());
        }
        flush(plane, cells, buffer.data());
    }

    void place_windows(int64_t plane, const Box& windows, const Box& cells, Range taps, float* buffer) const {
        for (int64_t d = windows[0].begin; d < windows[0].end; ++d) {
            for (int64_t h = windows[1].begin; h < windows[1].end; ++h) {
                for (int64_t w = windows[2].begin; w < windows[2].end; ++w) {
                    const int64_t flat = (d * problem_.axes[1].out + h) * problem_.axes[2].out + w;
                    const int64_t position = plane * problem_.windows() + flat;
                    const std::array<Window, kAxes> window = {problem_.axes[0].window(d), problem_.axes[1].window(h),
                                                              problem_.axes[2].window(w)};
                    place(position, window, cells, taps, buffer);
                }
            }
        }
    }

    // An index that is not a position of its own window matches nothing, and its gradient is dropped.
    void place(int64_t position, const std::array<Window, kAxes>& window, const Box& cells, Range taps,
               float* buffer) const {
        const int64_t index = memory_.indices.load(position);
        if (!is_in_plane(problem_, index)) return;
        const Cell cell = decode(problem_, index);
        const bool matches = window[0].covers(cell.d) && window[1].covers(cell.h) && window[2].covers(cell.w);
        if (matches && taps.contains((cell.d - window[0].start) / window[0].step)) add(position, cell, cells, buffer);
    }

    void add(int64_t position, const Cell& cell, const Box& cells, float* buffer) const {
        const int64_t row = (cell.d - cells[0].begin) * cells[1].size() + cell.h - cells[1].begin;
        float& sum = buffer[row * cells[2].size() + cell.w - cells[2].begin];
        accumulate(sum, memory_.gradient.load(position), problem_.value);
    }

    void flush(int64_t plane, const Box& cells, const float* buffer) const {
        for (int64_t d = cells[0].begin; d < cells[0].end; ++d) {
            for (int64_t h = cells[1].begin; h < cells[1].end; ++h, buffer += cells[2].size()) {
                const int64_t row = (d * problem_.axes[1].in + h) * problem_.axes[2].in + cells[2].begin;
                flush_row(plane * problem_.cells() + row, cells[2].size(), buffer);
            }
        }
    }

    void flush_row(int64_t first, int64_t length, const float* row) const {
        float* const target = sums();
        for (int64_t i = 0; i < length; ++i) {
            if (target == nullptr) {
                memory_.result.store(first + i, row[i], memory_.saturate);
            } else if (route_.is_atomic) {
                atomic_add(target + first + i, row[i]);
            } else {
                accumulate(target[first + i], row[i], problem_.value);
            }
        }
    }

    const Problem& problem_;
    const Route& route_;
    const BackwardMemory& memory_;
    const Grid grid_;
};

}  // namespace

void run_normal(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    const NormalKernel kernel(problem, route, memory);
    if (float* const sums = kernel.sums()) {
        clear_sums(problem, route, sums);
    } else {
        clear(memory.result.data(), problem.planes() * problem.cells(), 2);
    }
    run_on_cores(kernel.units(), route.cores, route.is_atomic, [&](Range share) { kernel.run(share); });
    if (route.has_scratch) cast_sums(problem, route, memory);
}

}  // namespace emulator
