// aclOpExecutor: the caller's handle between the two phases.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "plan.h"
#include "tensor.h"

struct aclOpExecutor {
    const char* api;
    std::shared_ptr<const emulator::Plan> plan;
    std::vector<const aclTensor*> tensors;  // inputs, then outputs; they belong to the caller
    size_t inputs;
    std::string cache_key;  // empty where the cache is off
    bool from_cache;
    std::vector<void*> addresses;  // one per tensor; null until replaced, then it wins over the tensor's own
    bool repeatable = false;
    void* first_workspace = nullptr;  // of its first run
    bool has_run = false;
    aclrtStream first_stream = nullptr;  // of its first run
    std::thread::id maker = std::this_thread::get_id();
};

namespace emulator {

aclOpExecutor* create_executor(const char* api, std::shared_ptr<const Plan> plan, std::vector<const aclTensor*> tensors,
                               size_t inputs, std::string cache_key, bool from_cache);

// Where the data of each tensor lies now.
std::vector<void*> current_addresses(const aclOpExecutor& executor);

// Phase two of every API: enqueue and return. An executor that is not repeatable is gone afterwards.
aclnnStatus run_executor(void* workspace, uint64_t workspace_size, aclOpExecutor* executor, aclrtStream stream);

}  // namespace emulator
