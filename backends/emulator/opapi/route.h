// Which branch of the implementation a problem takes, and how that branch cuts it.
#pragma once

#include <array>
#include <string>

#include "geometry.h"

namespace emulator {

enum class Template {
    kNormal,          // A2, A3: windows in tiles, sums in the buffer, tiles added to global memory
    kScatter,         // A2, A3: stores at the index, no accumulation
    kScatterOverlap,  // A2, A3: serial additions at the index
    kTiled,           // 950: input cells in tiles, every tile looks at all windows over it
    kCopy,            // 950: kernel and stride of one
    kNative,          // 950 adaptive: additions in the value type at the index
    kForward,
    kBits,            // A2, A3: one cell per window, a bit per window in the mask
};

// What the lanes of one vector instruction run over in the tiled template.
enum class Lanes { kNone, kWidth, kHeightWidth, kChannel, kWidthChannel, kHeightWidthChannel };

constexpr int64_t kUnknownKey = -1;  // a branch whose tiling key is not published

struct Route {
    const char* op = "";
    const char* name = "";
    int64_t key = kUnknownKey;
    Template algorithm = Template::kForward;

    std::array<int64_t, kAxes> tile{1, 1, 1};  // windows (normal) or input cells (tiled)
    int64_t planes_per_block = 1;
    int split_axes = 0;       // how many of D, H, W are cut across cores; the rest is cut within a core
    int64_t kernel_slab = 0;  // taps of the D axis per pass; 0: all of them
    Lanes lanes = Lanes::kNone;
    bool drops_foreign = false;  // an index outside its own window is ignored
    int64_t cores = 1;
    bool is_atomic = false;    // cores add to shared cells in no fixed order
    bool has_scratch = false;  // float32 sums in the workspace, cast at the end

    std::string describe() const;
};

// Backward routes. Each expects a problem that its tiling has accepted.
Route route_220_windowed(const Problem& problem);
Route route_220_adaptive(const Problem& problem);
Route route_950_windowed_3d(const Problem& problem);
Route route_950_windowed_2d(const Problem& problem);
Route route_950_adaptive(const Problem& problem);

struct Call;
Route route_forward(const Call& call, const Problem& problem);
Route route_bits(const Call& call);

}  // namespace emulator
