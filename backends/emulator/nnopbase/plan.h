// What phase one works out and phase two carries out. Operators derive from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../ascendcl/status.h"
#include "../ascendcl/stream.h"

namespace emulator {

class Plan {
  public:
    virtual ~Plan() = default;

    // The device work on these data pointers (one per tensor of the call, in API order) and this workspace.
    // Nothing is looked at before the stream runs the task.
    virtual Stream::Task bind(std::vector<void*> addresses, void* workspace) const = 0;

    uint64_t workspace_size = 0;
    // Name of the branch of the implementation, for tests.
    std::string route;
    // Why the launch is refused in phase two; empty where it is not.
    std::string refusal;
    // What such a launch answers.
    int refusal_status = status::kInnerNullPointer;
};

}  // namespace emulator
