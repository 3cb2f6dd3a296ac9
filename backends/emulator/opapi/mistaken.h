// Seeded defects of phase one that take the plan of another call for this one's.
#pragma once

#include <memory>

#include "lowering.h"

namespace emulator {

// `own`, or the plan that phase one made of another call, before or at the same time.
std::shared_ptr<const PoolPlan> mistaken_plan(const Call& call, std::shared_ptr<const PoolPlan> own);

}  // namespace emulator
