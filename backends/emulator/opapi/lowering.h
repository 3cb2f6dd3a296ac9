// From an accepted call to a plan: the problem in five dimensions, its route, and the layout of the workspace.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../nnopbase/plan.h"
#include "call.h"
#include "route.h"
#include "view.h"

namespace emulator {

// What happens to one tensor of the call on its way to or from the kernel.
struct Operand {
    Role role;
    View view;
    bool is_touched = true;  // the data of self is never read by a backward
    int64_t staging = -1;    // where in the workspace its dense copy lies; -1: the kernel works in place
    int64_t narrow = -1;     // where its int32 copy lies, for int64 indices of an int32 kernel; -1: none
};

class PoolPlan : public Plan, public std::enable_shared_from_this<PoolPlan> {
  public:
    Stream::Task bind(std::vector<void*> addresses, void* workspace) const override;

    const Family* family = nullptr;
    bool is_empty = false;  // nothing to compute
    Problem problem;
    Route branch;
    std::vector<Operand> operands;  // API order
    int64_t scratch = -1;           // where the float32 sums lie
    // Whether the refusal shows in phase one already.
    bool refuses_early = false;
};

std::shared_ptr<const PoolPlan> empty_plan(const Call& call);
std::shared_ptr<const PoolPlan> make_plan(const Call& call);

// The device work of one launch.
int run_plan(const PoolPlan& plan, const std::vector<void*>& addresses, void* workspace, bool saturate);

}  // namespace emulator
