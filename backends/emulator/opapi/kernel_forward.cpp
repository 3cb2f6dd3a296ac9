// The forward maximum and its index. Visiting a window's cells in row-major order, a value replaces the running
// maximum when it is greater or NaN: the first maximum wins a tie, the last NaN wins over everything, and a window
// of nothing but -inf keeps its first cell.
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "../ascendcl/product.h"
#include "../ascendcl/status.h"
#include "../ascendcl/variations.h"
#include "cores.h"
#include "kernel.h"

namespace emulator {
namespace {

class ForwardKernel {
  public:
    ForwardKernel(const Problem& problem, const ForwardMemory& memory) : problem_(problem), memory_(memory) {}

    void run(Range share) const {
        for (int64_t output = share.begin; output < share.end; ++output) {
            run_window(output / problem_.windows(), output % problem_.windows());
        }
    }

  private:
    void run_window(int64_t plane, int64_t flat) const {
        const int64_t columns = problem_.axes[2].out, rows = problem_.axes[1].out;
        const Window depth = problem_.axes[0].window(flat / (rows * columns));
        const Window height = problem_.axes[1].window(flat / columns % rows);
        const Window width = problem_.axes[2].window(flat % columns);
        if (seeded(Defect::odd_channel_lost) && is_lost(plane)) return;
        const int64_t winner = find_winner(plane, depth, height, width, flat % columns);
        const int64_t target = problem_.offset(plane, flat, problem_.windows());
        if (!has_defects || !misplaces_index(plane, winner, target, height, width)) {
            memory_.indices.store(target, seeded(Defect::index_in_padded_plane) ? in_padded_plane(winner) : winner);
        }
        if (seeded(Defect::lowest_finite_initial) && is_minus_infinity(plane, winner)) {
            memory_.output.store(target, std::numeric_limits<float>::lowest(), true);
        } else if (seeded(Defect::overhang_read_as_zero) && reads_zero(plane, winner, height, width)) {
            memory_.output.store(target, 0.0f, false);
        } else if (winner >= 0) {
            memory_.output.copy(target, memory_.input, problem_.offset(plane, winner, problem_.cells()));
        } else {
            memory_.output.store(target, -std::numeric_limits<float>::infinity(), false);
        }
    }

    // Channels are computed two by two.
    bool is_lost(int64_t plane) const {
        const bool is_odd = problem_.channels % 2 == 1 && problem_.channels > 1;
        return problem_.channels_last && problem_.spatial_rank == 3 && is_odd &&
               plane % problem_.channels == problem_.channels - 1;
    }

    // As the 950's 2-D forward has kernels of its own for.
    bool has_many_channels_last() const {
        return problem_.channels_last && problem_.channels > 32 && problem_.spatial_rank == 2;
    }

    int64_t taps() const {
        return problem_.axes[0].largest_window() * problem_.axes[1].largest_window() *
               problem_.axes[2].largest_window();
    }

    // Whether a defect stores another index than the winner's, or none.
    bool misplaces_index(int64_t plane, int64_t winner, int64_t target, const Window& height,
                         const Window& width) const {
        if (winner < 0) {
            if (!seeded(Defect::index_behind_plane)) return false;
            memory_.indices.store(target, first_tap(height) * problem_.axes[2].in + first_tap(width));
            return true;
        }
        const bool is_planar = problem_.spatial_rank == 2 && !problem_.channels_last;
        const bool is_in_parts = is_planar && taps() > 29184 && !shares_windows();
        const bool is_unset = seeded(Defect::part_index_unset) && is_in_parts;
        const bool is_zero = seeded(Defect::part_index_begins_at_zero) && has_many_channels_last() && taps() >= 512;
        const bool is_idle = seeded(Defect::idle_core_wins_tie) && leaves_core_idle(width);
        if (!(is_unset || is_zero || is_idle) || !is_minus_infinity(plane, winner)) return false;
        if (!is_unset) memory_.indices.store(target, is_zero ? 0 : -1);
        return true;
    }

    // Whether padding takes all columns of one of the cores that share a wide window.
    bool leaves_core_idle(const Window& width) const {
        const Axis& axis = problem_.axes[2];
        const int64_t cores = product().vector_cores / (problem_.planes() * problem_.windows());
        const bool is_wide = problem_.spatial_rank == 3 && axis.kernel * (problem_.is_half() ? 2 : 4) >= 128;
        if (!is_wide || axis.adaptive || problem_.channels_last || problem_.is_dilated() || cores < 2) return false;
        const int64_t columns = std::min(width.end(), axis.in) - std::max<int64_t>(width.start, 0);
        const int64_t share = ceil_divide(axis.kernel, cores);
        return ceil_divide(columns, share) < ceil_divide(axis.kernel, share);
    }

    // The first coordinate at or behind 0, whether the input has it or not.
    static int64_t first_tap(const Window& window) {
        return window.start + std::max<int64_t>(ceil_divide(-window.start, window.step), 0) * window.step;
    }

    int64_t in_padded_plane(int64_t winner) const {
        const Axis &height = problem_.axes[1], &width = problem_.axes[2];
        const Cell cell = decode(problem_, winner);
        const int64_t row = cell.d * (height.in + 2 * height.padding) + cell.h + height.padding;
        return row * (width.in + 2 * width.padding) + cell.w + width.padding;
    }

    bool is_minus_infinity(int64_t plane, int64_t winner) const {
        return winner >= 0 && memory_.input.load_double(problem_.offset(plane, winner, problem_.cells())) ==
                                  -std::numeric_limits<double>::infinity();
    }

    // Whether a zero beside the input would win.
    bool reads_zero(int64_t plane, int64_t winner, const Window& height, const Window& width) const {
        const bool reaches_out = height.end() > problem_.axes[1].in || width.end() > problem_.axes[2].in;
        return reaches_out && winner >= 0 &&
               memory_.input.load_double(problem_.offset(plane, winner, problem_.cells())) < 0.0;
    }

    // Flat index of the winning cell, -1 for a window without any cell in the input.
    int64_t find_winner(int64_t plane, const Window& depth, const Window& height, const Window& width,
                        int64_t column) const {
        int64_t winner = -1;
        size_t offset = 0;
        std::vector<int64_t> visited;  // cells in window order, where a defect counts them
        const bool counts_cells = seeded(Defect::uint8_window_offset) || seeded(Defect::uint12_window_offset);
        double maximum = -std::numeric_limits<double>::infinity();
        for_each(problem_.axes[0], depth, [&](int64_t d) {
            for_each(rows_as_read(), height, [&](int64_t h) {
                const int64_t row = (d * problem_.axes[1].in + h) * problem_.axes[2].in;
                for_each(as_read(problem_.axes[2]), width, [&](int64_t w) {
                    if (has_defects && row + w >= readable_cells(plane)) return;
                    const int64_t place = has_defects ? place_read(row, w, width) : row + w;
                    const double value = memory_.input.load_double(problem_.offset(plane, place, problem_.cells()));
                    if (counts_cells) visited.push_back(row + w);
                    const bool must_exceed = winner >= 0 || seeded(Defect::minus_infinity_unset);
                    if (must_exceed && !replaces(value, maximum)) return;
                    const bool is_late = seeded(Defect::nan_lost_in_deep_windows) && h > height.start;
                    if (is_late && std::isnan(value) && loses_nan(column, d - depth.start)) return;
                    winner = row + w;
                    maximum = value;
                    offset = visited.size() - 1;
                });
            });
        });
        return visited.empty() ? winner : visited[offset & (seeded(Defect::uint8_window_offset) ? 0xFF : 0xFFF)];
    }

    // Whether a slice lies behind the 32 rows of lanes that a mask of NaN is made of. Small adaptive windows have them
    // side by side, slice by slice.
    bool loses_nan(int64_t column, int64_t slice) const {
        const std::array<Axis, kAxes>& axes = problem_.axes;
        const int64_t slices = axes[0].largest_window(), width = axes[2].largest_window();
        const int64_t rows = slices * axes[1].largest_window();
        const bool is_small = rows * align(width, 8) < 128 && width <= 16;
        if (!is_small || !axes[0].adaptive || !problem_.overlaps()) return false;
        return column % std::min({axes[2].out, 16 / width, 128 / rows / 8 * 8 / width}) * slices + slice >= 32;
    }

    // Where a cell is read that lies in a row, which begins there.
    int64_t place_read(int64_t row, int64_t w, const Window& width) const {
        const Axis& axis = problem_.axes[2];
        if (seeded(Defect::uint16_row_offset) && axis.in % 16 != 0) return (row & 0xFFFF) + w;
        const bool begins_outside = width.start < 0 && axis.padding > axis.stride;
        if (seeded(Defect::padded_start_shifted) && has_many_channels_last() && begins_outside) {
            return std::min(row + w + width.start + axis.padding, problem_.cells() - 1);
        }
        return row + w;
    }

    // The rows; where cores share a window, as many as a whole one has.
    Axis rows_as_read() const {
        Axis axis = problem_.axes[1];
        if (seeded(Defect::ceil_rows_of_next_plane) && shares_windows()) axis.in += axis.kernel;
        return axis;
    }

    bool shares_windows() const {
        return problem_.planes() * problem_.windows() < 16 && taps() >= 1024 && !problem_.is_padded() &&
               !problem_.axes[1].adaptive && !problem_.channels_last && problem_.spatial_rank == 2;
    }

    // Cells from the plane's first on that are read at most.
    int64_t readable_cells(int64_t plane) const {
        const bool reads_on = seeded(Defect::ceil_rows_of_next_plane) && shares_windows();
        return (reads_on ? problem_.planes() - plane : 1) * problem_.cells();
    }

    static bool replaces(double value, double maximum) {
        if (seeded(Defect::nan_loses) && std::isnan(value)) return false;
        const bool is_default = bits_as<uint64_t>(value) == 0x7FF8000000000000u;  // that of a narrower type, too
        if (seeded(Defect::default_nan_alone) && std::isnan(value) && !is_default) return false;
        if (seeded(Defect::first_nan_wins) && std::isnan(maximum)) return false;
        if (seeded(Defect::compares_rounded_data)) {
            value = rounded_to(ACL_BF16, static_cast<float>(value));
            maximum = rounded_to(ACL_BF16, static_cast<float>(maximum));
        }
        const bool is_signed = value == 0.0 && maximum == 0.0 && std::signbit(value) != std::signbit(maximum);
        if (seeded(Defect::signed_zeros_ordered) && is_signed) return std::signbit(maximum);
        const bool takes_equals = seeded(Defect::last_maximum_wins) || variations.ties == Ties::kLast;
        if (takes_equals && value == maximum) return true;
        if (variations.nans == Nans::kFirst && std::isnan(maximum)) return false;
        return value > maximum || (std::isnan(value) && variations.nans != Nans::kIgnore);
    }

    // The last axis; with a defect that does not know where a row ends, twice as long.
    static Axis as_read(Axis axis) {
        if (seeded(Defect::overhang_reads_next_row)) axis.in *= 2;
        return axis;
    }

    template <class Visit>
    static void for_each(const Axis& axis, const Window& window, Visit visit) {
        for (int64_t tap = 0; tap < window.taps; ++tap) {
            const int64_t coordinate = window.start + tap * window.step;
            if (coordinate >= 0 && coordinate < axis.in) visit(coordinate);
        }
    }

    const Problem& problem_;
    const ForwardMemory& memory_;
};

// Whether a window of the planes of a vector fits with int32 indices alone, which a tiling has until it reads theirs.
bool fits_by_narrow_indices_alone(const Problem& problem) {
    const int64_t item = problem.is_half() ? 2 : 4, block = 32 / item, lanes = 256 / item;
    const std::array<Axis, kAxes>& axes = problem.axes;
    const int64_t rows = axes[0].largest_window() * axes[1].largest_window();
    const int64_t elements = align(rows * align(axes[2].largest_window(), block), 16) * lanes;
    const auto fits = [&](int64_t index) { return elements * (3 * item + 4 + index) <= product().buffer_bytes; };
    return problem.index == ACL_INT64 && fits(4) && !fits(8);
}

}  // namespace

int run_forward(const Problem& problem, const Route& route, const ForwardMemory& memory) {
    const bool is_parallel = std::string_view(route.name) == "parallel" && problem.overlaps();
    if (seeded(Defect::buffer_of_narrow_indices) && is_parallel && fits_by_narrow_indices_alone(problem)) {
        return status::kRtDeviceMemoryError;
    }
    const ForwardKernel kernel(problem, memory);
    run_on_cores(problem.planes() * problem.windows(), route.cores, false, [&](Range share) { kernel.run(share); });
    return status::kSuccess;
}

}  // namespace emulator
