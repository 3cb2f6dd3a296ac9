// Seeded defects of time: device work that reads or writes too early or too late.
#pragma once

#include <vector>

#include "lowering.h"

namespace emulator {

// `task`, which runs the plan on these addresses, as a library with a defect of time enqueues it.
Stream::Task mistimed(const PoolPlan& plan, const std::vector<void*>& addresses, Stream::Task task);

}  // namespace emulator
