// Seeded defects of phase two: whom it refuses, what it runs, and where.
#pragma once

#include <optional>

#include "../ascendcl/context.h"
#include "executor.h"

namespace emulator {

struct SeededRefusal {
    aclnnStatus status;
    const char* why;
};

// Why a launch that is legal is refused all the same; nothing where it is not.
std::optional<SeededRefusal> seeded_refusal(const aclOpExecutor& executor, aclrtStream stream);

// Whether this run of a repeatable executor does nothing.
bool skips(aclOpExecutor& executor);

// Keeps what phase one made last.
void remember_newest(const aclOpExecutor& executor);
// What phase two runs when it is given `own`: that, or what phase one made last.
aclOpExecutor executor_to_run(const aclOpExecutor& own, uint64_t size);
// `own`, with the plan that phase one made last, where that is for the same tensors.
aclOpExecutor with_newest_plan(const aclOpExecutor& own);

// The stream on which a launch ends up that was meant for `handle`.
aclrtStream stream_to_use(Context& context, aclrtStream handle);

// The device work of a launch, its tensors looked at when the stream comes to it.
Stream::Task bound_late(const aclOpExecutor& executor, void* workspace);

}  // namespace emulator
