// Seeded defects of the process: what phase two leaves otherwise than it was.
#pragma once

#include "lowering.h"

namespace emulator {

// What the host side of a launch does to its process besides launching.
void leave_behind(const PoolPlan& plan);

}  // namespace emulator
