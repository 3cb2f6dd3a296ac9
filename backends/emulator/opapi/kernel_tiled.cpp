// 950: a core takes a tile of input cells, looks at every window over the tile, those that begin before it
// included, sums in the buffer what falls into the tile, and casts once. Tiles never share a cell, so there is
// nothing atomic and one order of additions.
//
// Additions are made in vectors: gather all sums, add, scatter all. Lanes of one vector must therefore belong to
// windows that cannot choose the same cell, which is why windows are visited in phases.
#include <atomic>
#include <map>
#include <vector>

#include "cores.h"
#include "kernel.h"

namespace emulator {
namespace {

class TileSums {
  public:
    TileSums(const Problem& problem, const BackwardMemory& memory, Range planes, const Box& cells)
        : problem_(problem), memory_(memory), planes_(planes), cells_(cells) {
        sums_.assign(static_cast<size_t>(planes.size() * cells[0].size() * cells[1].size() * cells[2].size()), 0.0f);
        if (seeded(Defect::buffer_cleared_late)) leave_a_sum();
    }

    // Adds one lane to the vector under way, if its cell lies in the tile.
    void push(int64_t plane, const Cell& cell, int64_t position) {
        if (!contains(cell)) return;
        targets_[lanes_] = slot(plane, cell);
        if (has_defects && targets_[lanes_] >= sums_.size()) return;
        gradients_[lanes_] = memory_.gradient.load(position);
        if (++lanes_ == kLanes) add_vector();
    }

    void add_vector() {
        float gathered[kLanes];
        for (int lane = 0; lane < lanes_; ++lane) gathered[lane] = sums_[targets_[lane]];
        if (races) gather_too_early(gathered);
        for (int lane = 0; lane < lanes_; ++lane) accumulate(gathered[lane], gradients_[lane], problem_.value);
        for (int lane = 0; lane < lanes_; ++lane) sums_[targets_[lane]] = gathered[lane];
        lanes_ = 0;
    }

    void store() const {
        for (int64_t plane = planes_.begin; plane < planes_.end; ++plane) {
            for (int64_t d = cells_[0].begin; d < cells_[0].end; ++d) {
                for (int64_t h = cells_[1].begin; h < cells_[1].end; ++h) store_row(plane, d, h);
            }
        }
    }

    bool races = false;  // a vector may be gathered before the last one is stored

  private:
    // What the last vector stored is not there yet.
    void gather_too_early(float* gathered) {
        std::map<size_t, float> before;
        for (int lane = 0; lane < lanes_; ++lane) {
            before[targets_[lane]] = gathered[lane];
            if (const auto last = stored_over_.find(targets_[lane]); last != stored_over_.end()) {
                gathered[lane] = last->second;
            }
        }
        stored_over_ = std::move(before);
    }

    static constexpr int kLanes = 64;  // 256 bytes of float32

    bool contains(const Cell& cell) const {
        const int64_t more = seeded(Defect::tile_end_inclusive) ? 1 : 0;
        const Range rows = {cells_[1].begin, cells_[1].end + more}, columns = {cells_[2].begin, cells_[2].end + more};
        return cells_[0].contains(cell.d) && rows.contains(cell.h) && columns.contains(cell.w);
    }

    size_t slot(int64_t plane, const Cell& cell) const {
        const int64_t row = (cell.d - cells_[0].begin) * cells_[1].size() + cell.h - cells_[1].begin;
        const int64_t in_plane = row * cells_[2].size() + cell.w - cells_[2].begin;
        const int64_t first = (plane - planes_.begin) * cells_[0].size() * cells_[1].size() * cells_[2].size();
        if (seeded(Defect::int16_tile_offset) && problem_.is_half()) return (first + in_plane) & 0x7FFF;
        return static_cast<size_t>(first + in_plane);
    }

    void store_row(int64_t plane, int64_t d, int64_t h) const {
        const int64_t row = (d * problem_.axes[1].in + h) * problem_.axes[2].in;
        for (int64_t w = cells_[2].begin; w < cells_[2].end; ++w) {
            int64_t target = problem_.offset(plane, row + w, problem_.cells());
            if (seeded(Defect::channels_last_batch_order) && problem_.channels_last) {
                target =
                    (plane % problem_.batch * problem_.cells() + row + w) * problem_.channels + plane / problem_.batch;
            }
            if (seeded(Defect::gaps_not_stored) && is_gap({d, h, w})) continue;
            memory_.result.store(target, sums_[slot(plane, {d, h, w})], memory_.saturate);
        }
    }

    bool is_gap(const Cell& cell) const {
        return problem_.axes[0].windows_over({cell.d, cell.d + 1}).size() <= 0 ||
               problem_.axes[1].windows_over({cell.h, cell.h + 1}).size() <= 0 ||
               problem_.axes[2].windows_over({cell.w, cell.w + 1}).size() <= 0;
    }

    // Now and then the first sum still holds what another tile left there.
    void leave_a_sum() {
        static float left = 0.0f;
        static std::atomic<int> tiles{0};
        if (++tiles % 100 == 0) sums_.front() = left;
        left = 1.0f;
    }

    const Problem& problem_;
    const BackwardMemory& memory_;
    const Range planes_;
    const Box cells_;
    std::vector<float> sums_;
    std::map<size_t, float> stored_over_;
    size_t targets_[kLanes];
    float gradients_[kLanes];
    int lanes_ = 0;
};

bool is_one_in_thirty() {
    static std::atomic<int> launches{0};
    return ++launches % 30 == 0;
}

class TiledKernel {
  public:
    TiledKernel(const Problem& problem, const Route& route, const BackwardMemory& memory)
        : problem_(problem),
          route_(route),
          memory_(memory),
          grid_(counted_planes(problem), route.planes_per_block,
                {problem.axes[0].in, problem.axes[1].in, problem.axes[2].in}, route.tile) {}

    int64_t units() const { return grid_.blocks() * grid_.tiles(); }

    void run(Range share) const {
        for (int64_t unit = share.begin; unit < share.end; ++unit) {
            run_tile(grid_.planes(unit / grid_.tiles()), grid_.box(unit % grid_.tiles()));
        }
    }

  private:
    static constexpr int64_t kVectorBytes = 256;

    void run_tile(Range planes, const Box& cells) const {
        TileSums sums(problem_, memory_, planes, cells);
        sums.races = races_;
        Box windows;
        for (int axis = 0; axis < kAxes; ++axis) windows[axis] = windows_over(problem_.axes[axis], cells[axis]);
        const bool merges_rows = route_.lanes == Lanes::kHeightWidthChannel;
        if (seeded(Defect::width_tail_dropped) && !merges_rows && windows[2].size() > 64) {
            windows[2].end -= windows[2].size() % 64;
        }
        for (int64_t d = windows[0].begin; d < windows[0].end; ++d) {
            if (merges_rows) {
                visit_phases(sums, planes, d, windows);
            } else if (route_.lanes == Lanes::kHeightWidth && !fills_lanes(windows[2])) {
                visit_rows(sums, planes, d, windows);
            } else {
                for (int64_t h = windows[1].begin; h < windows[1].end; ++h) visit_row(sums, planes, d, h, windows[2]);
            }
        }
        if (seeded(Defect::rows_read_past_plane)) read_past_plane(sums, planes, cells, windows);
        sums.store();
    }

    // The scalar template copies as many rows of windows as a tile can have, whatever is left of the plane.
    void read_past_plane(TileSums& sums, Range planes, const Box& cells, const Box& windows) const {
        constexpr int64_t kReadable = 64;  // elements behind the tensors
        const Axis& height = problem_.axes[1];
        if (route_.lanes != Lanes::kNone || cells[1].size() == height.in || route_.drops_foreign) return;
        const int64_t rows = ceil_divide(route_.tile[1] + height.kernel - 1, height.stride);
        const int64_t columns = problem_.axes[2].out, past = (windows[1].begin + rows) * columns;
        for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
            const int64_t end = std::min((problem_.planes() - plane) * problem_.windows() + kReadable, past);
            for (int64_t flat = problem_.windows(); flat < end; ++flat) {
                const int64_t position = plane * problem_.windows() + flat, index = memory_.indices.load(position);
                if (is_in_plane(problem_, index)) sums.push(plane, decode(problem_, index), position);
                sums.add_vector();
            }
        }
    }

    Range windows_over(Axis axis, Range cells) const {
        if (seeded(Defect::channels_last_dilation_ignored) && problem_.channels_last) axis.dilation = 1;
        Range windows = axis.windows_over(cells);
        if (seeded(Defect::lost_halo_window) && cells.begin > 0) {
            windows.begin = std::max(windows.begin, ceil_divide(cells.begin + axis.padding, axis.stride));
        }
        return windows;
    }

    // One vector spans rows: those of one phase do not overlap.
    void visit_phases(TileSums& sums, Range planes, int64_t d, const Box& windows) const {
        const int64_t rows = seeded(Defect::merged_rows_collide) ? 1 : problem_.axes[1].phases();
        const int64_t columns = problem_.axes[2].phases();
        for (int64_t phase = 0; phase < rows * columns; ++phase) {
            for (int64_t h = windows[1].begin + phase / columns; h < windows[1].end; h += rows) {
                for (int64_t w = windows[2].begin + phase % columns; w < windows[2].end; w += columns) {
                    visit_planes(sums, planes, d, h, w);
                }
            }
            sums.add_vector();
        }
    }

    // Whether one phase of a row needs more than half of a vector, so that rows are visited one by one.
    bool fills_lanes(Range columns) const {
        return 2 * (columns.size() / phases(2, columns)) * index_bytes() > kVectorBytes;
    }

    int64_t index_bytes() const { return problem_.index == ACL_INT64 ? 8 : 4; }

    int64_t phases(int axis, Range windows) const {
        return std::clamp<int64_t>(problem_.axes[axis].phases(), 1, std::max<int64_t>(windows.size(), 1));
    }

    // One vector spans as many rows of one phase as it holds; what is left of columns and rows comes behind them.
    void visit_rows(TileSums& sums, Range planes, int64_t d, const Box& windows) const {
        const int64_t step = phases(1, windows[1]);
        const int64_t in_row = std::max<int64_t>(windows[2].size() / phases(2, windows[2]), 1);
        const int64_t together = std::max<int64_t>(kVectorBytes / (in_row * index_bytes()), 1) * step;
        const int64_t full = windows[1].end - windows[1].size() % step;
        for (int64_t first = windows[1].begin; first < full; first += together) {
            visit_together(sums, planes, d, {first, std::min(first + together, full)}, step, windows[2]);
        }
        visit_together(sums, planes, d, {full, windows[1].end}, windows[1].end - full, windows[2]);
    }

    void visit_together(TileSums& sums, Range planes, int64_t d, Range rows, int64_t row_step, Range columns) const {
        const int64_t step = phases(2, columns), full = columns.end - columns.size() % step;
        for (int64_t row = rows.begin; row < std::min(rows.begin + row_step, rows.end); ++row) {
            const auto visit = [&](int64_t first, int64_t end) {
                for (int64_t h = row; h < rows.end; h += row_step) {
                    for (int64_t w = first; w < end; w += step) visit_planes(sums, planes, d, h, w);
                }
                sums.add_vector();
            };
            for (int64_t turn = 0; turn < step; ++turn) {
                visit(columns.begin + (backwards_ ? step - 1 - turn : turn), full);
            }
            for (int64_t w = full; w < columns.end; ++w) visit(w, w + 1);
        }
        for (int64_t h = rows.begin; h < rows.end; ++h) fill_last_block(sums, planes, d, h, columns);
    }

    void visit_row(TileSums& sums, Range planes, int64_t d, int64_t h, Range windows) const {
        const int64_t columns = route_.lanes == Lanes::kNone ? 1 : problem_.axes[2].phases();
        if (seeded(Defect::simt_count_wraps) && route_.lanes == Lanes::kNone && problem_.windows() == 256) return;
        for (int64_t turn = 0; turn < columns; ++turn) {
            const int64_t phase = backwards_ ? columns - 1 - turn : turn;
            for (int64_t w = windows.begin + phase; w < windows.end; w += columns) {
                visit_planes(sums, planes, d, h, w);
                if (route_.lanes == Lanes::kChannel) sums.add_vector();
            }
            sums.add_vector();
        }
        fill_last_block(sums, planes, d, h, windows);
    }

    // The row's last block is filled up with index 0 and the last gradient.
    void fill_last_block(TileSums& sums, Range planes, int64_t d, int64_t h, Range windows) const {
        if (!seeded(Defect::padded_lane_adds) || windows.size() % 8 == 0) return;
        const int64_t last = (d * problem_.axes[1].out + h) * problem_.axes[2].out + windows.end - 1;
        for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
            sums.push(plane, {0, 0, 0}, problem_.offset(plane, last, problem_.windows()));
        }
        sums.add_vector();
    }

    void visit_planes(TileSums& sums, Range planes, int64_t d, int64_t h, int64_t w) const {
        const int64_t flat = (d * problem_.axes[1].out + h) * problem_.axes[2].out + w;
        for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
            const int64_t position = problem_.offset(plane, flat, problem_.windows());
            const int64_t index = memory_.indices.load(position);
            if (!is_in_plane(problem_, index)) continue;
            const Cell cell = decode(problem_, index);
            if (route_.drops_foreign && !is_own(cell, d, h, w)) continue;
            sums.push(plane, cell, position);
            if (route_.lanes == Lanes::kNone) sums.add_vector();
        }
    }

    bool is_own(const Cell& cell, int64_t d, int64_t h, int64_t w) const {
        return problem_.axes[0].window(d).covers(cell.d) && problem_.axes[1].window(h).covers(cell.h) &&
               problem_.axes[2].window(w).covers(cell.w);
    }

    const Problem& problem_;
    const Route& route_;
    const BackwardMemory& memory_;
    const Grid grid_;
    const bool backwards_ =
        seeded(Defect::order_by_address) && (reinterpret_cast<uintptr_t>(memory_.result.data()) & 64);
    const bool races_ = seeded(Defect::step_not_awaited) && route_.lanes != Lanes::kNone && is_one_in_thirty();
};

}  // namespace

void run_tiled(const Problem& problem, const Route& route, const BackwardMemory& memory) {
    const TiledKernel kernel(problem, route, memory);
    run_on_cores(kernel.units(), route.cores, false, [&](Range share) { kernel.run(share); });
}

}  // namespace emulator
