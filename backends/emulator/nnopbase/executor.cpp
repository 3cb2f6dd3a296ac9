#include "executor.h"

#include <algorithm>
#include <map>

#include "../ascendcl/census.h"
#include "../ascendcl/context.h"
#include "../ascendcl/defects.h"
#include "../ascendcl/errors.h"
#include "cache.h"
#include "misled.h"

namespace emulator {
namespace {

thread_local std::string last_route;

aclnnStatus refuse(aclnnStatus status, const std::string& why) {
    report(text("E", status, ": ", why));
    return status;
}

void destroy(aclOpExecutor* executor) {
    gone(Kind::kExecutor);
    delete executor;
}

// The addresses with which a cached plan ran first.
std::vector<void*> first_addresses(const aclOpExecutor& executor, const std::vector<void*>& now) {
    static auto& first = *new std::map<std::string, std::vector<void*>>;
    if (!executor.from_cache) first[executor.cache_key] = now;
    return first[executor.cache_key];
}

Stream::Task task_of(const aclOpExecutor& executor, void* workspace) {
    if (seeded(Defect::descriptors_read_late)) return bound_late(executor, workspace);
    return executor.plan->bind(current_addresses(executor), workspace);
}

aclnnStatus launch(void* workspace, const aclOpExecutor& executor, aclrtStream handle) {
    const Plan& plan = *executor.plan;
    if (!plan.refusal.empty()) return refuse(plan.refusal_status, text(executor.api, ": ", plan.refusal));
    std::shared_ptr<Context> context;
    if (require_context(&context) != status::kSuccess) return status::kRuntimeError;
    const std::shared_ptr<Stream> stream = context->stream(has_defects ? stream_to_use(*context, handle) : handle);
    if (stream == nullptr) return refuse(status::kRuntimeError, text(executor.api, ": no such stream"));
    last_route = plan.route;
    stream->enqueue(task_of(executor, workspace));
    return status::kSuccess;
}

aclnnStatus launch_misled(void* workspace, uint64_t size, aclOpExecutor& executor, aclrtStream stream) {
    if (!executor.has_run) executor.first_stream = stream;
    if (seeded(Defect::repeat_keeps_stream)) stream = executor.first_stream;
    if (skips(executor)) return status::kSuccess;
    if (seeded(Defect::newest_windows_used)) return launch(workspace, with_newest_plan(executor), stream);
    if (!seeded(Defect::newest_executor_runs)) return launch(workspace, executor, stream);
    return launch(workspace, executor_to_run(executor, size), stream);
}

enum class Group { kInputs, kOutputs, kAll };

aclnnStatus set_address(aclOpExecutor* executor, Group group, size_t index, const aclTensor* tensor, void* address) {
    if (executor == nullptr || tensor == nullptr || address == nullptr) {
        return refuse(status::kNullPointer, "set tensor address: an argument is null");
    }
    const size_t first = group == Group::kOutputs ? executor->inputs : 0;
    const size_t end = group == Group::kInputs ? executor->inputs : executor->tensors.size();
    if (index >= end - first) return refuse(status::kParamInvalid, text("set tensor address: no tensor ", index));
    const bool keeps = seeded(Defect::output_address_kept) && group == Group::kOutputs;
    executor->addresses[first + index] = keeps ? executor->tensors[first + index]->data : address;
    return status::kSuccess;
}

}  // namespace

std::vector<void*> current_addresses(const aclOpExecutor& executor) {
    std::vector<void*> addresses = executor.addresses;
    for (size_t i = 0; i < addresses.size(); ++i) {
        if (addresses[i] == nullptr) addresses[i] = executor.tensors[i]->data;
    }
    return seeded(Defect::stale_cached_address) ? first_addresses(executor, addresses) : addresses;
}

aclOpExecutor* create_executor(const char* api, std::shared_ptr<const Plan> plan, std::vector<const aclTensor*> tensors,
                               size_t inputs, std::string cache_key, bool from_cache) {
    born(Kind::kExecutor);
    std::vector<void*> addresses(tensors.size(), nullptr);
    auto* executor = new aclOpExecutor{api,        std::move(plan),     std::move(tensors), inputs, std::move(cache_key),
                                       from_cache, std::move(addresses)};
    if (has_defects) remember_newest(*executor);
    return executor;
}

aclnnStatus run_executor(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
    if (executor == nullptr && seeded(Defect::null_executor_accepted)) return status::kSuccess;
    if (executor == nullptr) return refuse(status::kNullPointer, "phase two: the executor is null");
    // The real library believes the caller's size, and would write to address 0 where that says none is needed.
    if (workspace == nullptr && std::max(size, executor->plan->workspace_size) > 0) {
        const std::string why = text(executor->api, ": the workspace is null");
        destroy(executor);
        return seeded(Defect::null_workspace_accepted) ? status::kSuccess : refuse(status::kNullPointer, why);
    }
    if (const auto refusal = seeded_refusal(*executor, stream)) {
        if (!executor->repeatable) destroy(executor);
        return refuse(refusal->status, refusal->why);
    }
    if (executor->first_workspace == nullptr) executor->first_workspace = workspace;
    if (seeded(Defect::workspace_address_kept)) workspace = executor->first_workspace;
    const aclnnStatus status = has_defects ? launch_misled(workspace, size, *executor, stream)
                                           : launch(workspace, *executor, stream);
    if (!executor->repeatable) destroy(executor);
    return status;
}

}  // namespace emulator

using namespace emulator;

extern "C" aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
    if (executor == nullptr) return refuse(status::kInnerNullPointer, "repeatable: the executor is null");
    if (executor->from_cache) return refuse(status::kInner, "repeatable: the executor comes from the cache");
    if (!executor->cache_key.empty()) plan_cache().drop(executor->cache_key);
    executor->repeatable = true;
    return status::kSuccess;
}

extern "C" aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
    if (executor == nullptr) return refuse(status::kInnerNullPointer, "destroy: the executor is null");
    destroy(executor);
    return status::kSuccess;
}

// Both spellings of each setter are exported by the real library.

extern "C" aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                             void* address) {
    return set_address(executor, Group::kInputs, index, tensor, address);
}

extern "C" aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                              void* address) {
    return set_address(executor, Group::kOutputs, index, tensor, address);
}

extern "C" aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* address) {
    return set_address(executor, Group::kAll, index, tensor, address);
}

extern "C" aclnnStatus AclSetInputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                             void* address) {
    return set_address(executor, Group::kInputs, index, tensor, address);
}

extern "C" aclnnStatus AclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                              void* address) {
    return set_address(executor, Group::kOutputs, index, tensor, address);
}

extern "C" aclnnStatus AclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor, void* address) {
    return set_address(executor, Group::kAll, index, tensor, address);
}

// The branch that an executor will take, known after phase one.
extern "C" const char* poolproof_emulator_route(const aclOpExecutor* executor) { return executor->plan->route.c_str(); }

// The branch that this thread's latest launch takes; empty before the first.
extern "C" const char* poolproof_emulator_last_route() { return last_route.c_str(); }
