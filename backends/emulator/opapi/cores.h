// How work is cut into tiles and shared out over the vector cores.
#pragma once

#include <array>
#include <functional>

#include "geometry.h"

namespace emulator {

using Box = std::array<Range, kAxes>;

// A grid of tiles over blocks of planes: D, H and W are cut into pieces of `tile`, planes into pieces of
// `planes_per_block`; the last piece of each may be shorter.
class Grid {
  public:
    Grid(int64_t planes, int64_t planes_per_block, const std::array<int64_t, kAxes>& lengths,
         const std::array<int64_t, kAxes>& tile);

    int64_t blocks() const { return ceil_divide(planes_, planes_per_block_); }
    int64_t tiles(int axis) const { return ceil_divide(lengths_[axis], tile_[axis]); }
    int64_t tiles() const { return tiles(0) * tiles(1) * tiles(2); }

    Range planes(int64_t block) const;
    Box box(int64_t tile) const;

  private:
    int64_t planes_;
    int64_t planes_per_block_;
    std::array<int64_t, kAxes> lengths_;
    std::array<int64_t, kAxes> tile_;
};

// Gives every core one contiguous share of `units` and runs body(share). A concurrent run uses a few threads and, as
// cores do, starts in an order that differs from launch to launch; otherwise core follows core.
void run_on_cores(int64_t units, int64_t cores, bool concurrent, const std::function<void(Range)>& body);

}  // namespace emulator
