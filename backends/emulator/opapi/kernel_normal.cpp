// A2 and A3, normal and cut kernel templates: a core takes a tile of windows of a block of planes, places every
// gradient by comparing its index with the positions of its window, sums in the buffer, and flushes the sums.
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>
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
          grid_(counted_planes(problem), route.planes_per_block, visited(), route.tile) {}

    int64_t units() const {
        const int64_t units = grid_.blocks() * outer_tiles();
        const bool rounds = seeded(Defect::last_units_lost) && units > route_.cores;
        return rounds ? units - units % route_.cores : units;
    }

    void run(Range share) const {
        for (int64_t unit = share.begin; unit < share.end; ++unit) {
            const Range planes = planes_of(unit / outer_tiles());
            for (int64_t inner = 0; inner < inner_tiles(); ++inner) {
                Box windows = grid_.box(unit % outer_tiles() * inner_tiles() + inner);
                if (seeded(Defect::halo_counted_twice) && windows[1].begin > 0) --windows[1].begin;
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
        int64_t columns = problem_.axes[2].visited();
        if (seeded(Defect::deterministic_width_tail) && problem_.deterministic && columns > 8) columns -= columns % 8;
        return {problem_.axes[0].visited(), problem_.axes[1].visited(), columns};
    }

    // Tiles of the axes that are cut across cores, and of those that are cut within one.
    int64_t outer_tiles() const {
        int64_t count = 1;
        for (int axis = 0; axis < route_.split_axes; ++axis) count *= grid_.tiles(axis);
        return count;
    }
    int64_t inner_tiles() const { return grid_.tiles() / outer_tiles(); }

    Range planes_of(int64_t block) const {
        constexpr int64_t kShortLanes = 16, kLanes = 64;
        Range planes = grid_.planes(block);
        const int64_t count = problem_.planes();
        const bool is_short = count > kShortLanes && count < kLanes && route_.planes_per_block < kLanes;
        if (seeded(Defect::short_lanes_truncated) && is_short) {
            planes.end = std::max(planes.begin, std::min(planes.end, kShortLanes));
        }
        const bool is_tail = block > 0 && planes.size() < route_.planes_per_block;
        if (seeded(Defect::plane_tail_dropped) && is_tail) planes.end = planes.begin;
        return planes;
    }

    void run_tile(int64_t plane, const Box& windows) const {
        Box cells;
        for (int axis = 0; axis < kAxes; ++axis) cells[axis] = problem_.axes[axis].cells_under(windows[axis]);
        std::vector<float> buffer(static_cast<size_t>(cells[0].size() * cells[1].size() * cells[2].size()), 0.0f);
        const int64_t slab = route_.kernel_slab == 0 ? problem_.axes[0].in : route_.kernel_slab;
        int64_t taps = problem_.axes[0].largest_window();
        if (seeded(Defect::cut_kernel_last_slab_lost) && route_.kernel_slab > 0) taps -= slab;
        for (int64_t tap = 0; tap < taps; tap += slab) {
            place_windows(plane, windows, cells, {tap, tap + slab}, buffer.data());
        }
        flush(plane, cells, buffer.data());
    }

    // The kernel of a windowed pool goes tap by tap: what reaches one cell by ascending taps comes from descending
    // windows. That of an adaptive one goes window by window.
    void place_windows(int64_t plane, const Box& windows, const Box& cells, Range taps, float* buffer) const {
        int64_t end = windows[2].end;
        if (seeded(Defect::repeat_counter_wraps) && windows[2].size() > 255) {
            end = windows[2].begin + static_cast<uint8_t>(windows[2].size());
        }
        const bool descends = !problem_.axes[0].adaptive;
        const auto at = [descends](Range range, int64_t turn) {
            return descends ? range.end - 1 - turn : range.begin + turn;
        };
        const Range columns = {windows[2].begin, end};
        for (int64_t i = 0; i < windows[0].size(); ++i) {
            for (int64_t j = 0; j < windows[1].size(); ++j) {
                for (int64_t k = 0; k < columns.size(); ++k) {
                    const int64_t d = at(windows[0], i), h = at(windows[1], j), w = at(columns, k);
                    const int64_t flat = (d * problem_.axes[1].out + h) * problem_.axes[2].out + w;
                    const int64_t position = plane * problem_.windows() + flat;
                    const std::array<Window, kAxes> window = {problem_.axes[0].window(d), problem_.axes[1].window(h),
                                                              width_window(w)};
                    place(position, window, cells, taps, buffer);
                }
            }
        }
    }

    Window width_window(int64_t w) const {
        Window window = problem_.axes[2].window(w);
        // A stride of 32-byte blocks of lanes in a field of 8 bits.
        if (seeded(Defect::stride_field_wraps))
            window.start = w * (problem_.axes[2].stride % 32) - problem_.axes[2].padding;
        return window;
    }

    Cell cell_of(int64_t index, const std::array<Window, kAxes>& window) const {
        if (!seeded(Defect::index_taken_as_window_local)) return decode(problem_, index);
        const int64_t columns = window[2].taps, rows = window[1].taps;
        return {window[0].start + index / (rows * columns) % window[0].taps * window[0].step,
                window[1].start + index / columns % rows * window[1].step,
                window[2].start + index % columns * window[2].step};
    }

    static bool contains(const Box& cells, const Cell& cell) {
        return cells[0].contains(cell.d) && cells[1].contains(cell.h) && cells[2].contains(cell.w);
    }

    // An index that is not a position of its own window matches nothing, and its gradient is dropped.
    void place(int64_t position, const std::array<Window, kAxes>& window, const Box& cells, Range taps,
               float* buffer) const {
        const int64_t index = memory_.indices.load(position);
        if (!is_in_plane(problem_, index)) return;
        const Cell cell = cell_of(index, window);
        if (has_defects && !contains(cells, cell)) return;
        if (seeded(Defect::nan_spreads)) spread(position, window, cells, buffer);
        const bool matches = window[0].covers(cell.d) && window[1].covers(cell.h) && window[2].covers(cell.w);
        if (matches && taps.contains((cell.d - window[0].start) / window[0].step)) add(position, cell, cells, buffer);
    }

    // Selection by a product with zeros and ones: zero times NaN or infinity is NaN.
    void spread(int64_t position, const std::array<Window, kAxes>& window, const Box& cells, float* buffer) const {
        if (std::isfinite(memory_.gradient.load(position))) return;
        for (int64_t w = std::max(window[2].start, cells[2].begin); w < std::min(window[2].end(), cells[2].end); ++w) {
            const int64_t d = std::max(window[0].start, cells[0].begin), h = std::max(window[1].start, cells[1].begin);
            slot({d, h, w}, cells, buffer) = std::numeric_limits<float>::quiet_NaN();
        }
    }

    static float& slot(const Cell& cell, const Box& cells, float* buffer) {
        const int64_t row = (cell.d - cells[0].begin) * cells[1].size() + cell.h - cells[1].begin;
        return buffer[row * cells[2].size() + cell.w - cells[2].begin];
    }

    void add(int64_t position, const Cell& cell, const Box& cells, float* buffer) const {
        if (seeded(Defect::gradient_of_first_plane)) position %= problem_.windows();
        accumulate(slot(cell, cells, buffer), moved(memory_.gradient.load(position)), problem_.value);
    }

    // Cut windows are moved by an addition of zero, as of float16: what is a signalling NaN there becomes a quiet one.
    float moved(float gradient) const {
        const bool is_moved = seeded(Defect::bfloat16_moved_as_float16) && route_.kernel_slab > 0;
        const auto bits = bits_as<uint32_t>(gradient);
        const bool is_signalling = (bits >> 25 & 0x3Fu) == 0x3Eu && (bits >> 16 & 0x1FFu) != 0;
        return is_moved && problem_.value == ACL_BF16 && is_signalling ? bits_as<float>(bits | 0x2000000u) : gradient;
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
        if (seeded(Defect::row_tail_not_flushed) && length > 8) length = length / 8 * 8;
        if (seeded(Defect::nonatomic_core_add) && route_.is_atomic)
            return add_row_unprotected(target + first, length, row);
        for (int64_t i = 0; i < length; ++i) {
            const float sum = seeded(Defect::tile_sums_rounded) ? rounded_to(problem_.value, row[i]) : row[i];
            if (target == nullptr) {
                memory_.result.store(first + i, sum, memory_.saturate);
            } else if (route_.is_atomic) {
                atomic_add(target + first + i, sum);
            } else {
                accumulate(target[first + i], sum, problem_.value);
            }
        }
    }

    // The row is read, added to and written back, while another core may do the same.
    static void add_row_unprotected(float* target, int64_t length, const float* row) {
        std::vector<float> sums(target, target + length);
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        for (int64_t i = 0; i < length; ++i) target[i] = sums[static_cast<size_t>(i)] + row[i];
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
