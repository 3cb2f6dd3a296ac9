// The ten pairs of functions. Phase one checks and plans, phase two enqueues.
#include <cstdlib>

#include "../ascendcl/errors.h"
#include "../ascendcl/heap.h"
#include "../ascendcl/options.h"
#include "../ascendcl/product.h"
#include "../nnopbase/cache.h"
#include "../nnopbase/executor.h"
#include "contract.h"
#include "lowering.h"
#include "mistaken.h"

namespace emulator {
namespace {

// Everything that the real cache keys on: descriptions, never addresses.
std::string key_of(const Call& call) {
    std::string key = text(call.family->name, '|', product().name, '|', call.determinism, '|', call.ceil_mode);
    for (const Role role : call.roles()) {
        const aclTensor* tensor = call.tensors[role];
        if (tensor == nullptr) {
            key += "|null";
        } else {
            const bool has_strides = !seeded(Defect::cache_key_lacks_strides);
            key += text('|', tensor->shape, has_strides ? tensor->strides : tensor->shape, tensor->storage, ' ',
                        tensor->dtype, ' ', tensor->offset, ' ', tensor->format);
        }
    }
    if (seeded(Defect::cache_key_lacks_lists)) return key;
    for (const aclIntArray* list : call.lists) key += list == nullptr ? "|null" : text('|', list->values);
    return key;
}

aclnnStatus give(const Call& call, std::shared_ptr<const Plan> plan, const std::string& key, bool from_cache,
                 uint64_t* workspace_size, aclOpExecutor** executor) {
    std::vector<const aclTensor*> tensors;
    for (const Role role : call.roles()) tensors.push_back(call.tensors[role]);
    *workspace_size = plan->workspace_size;
    *executor = create_executor(call.family->name, std::move(plan), std::move(tensors), call.family->inputs.size(), key,
                                from_cache);
    return status::kSuccess;
}

// What a refused call allocated and does not free.
aclnnStatus refused(aclnnStatus status) {
    static void* volatile lost_on_host = nullptr;
    void* lost = nullptr;
    if (seeded(Defect::leak_per_refusal)) heap().allocate(0, 512, &lost);
    if (seeded(Defect::host_leak_per_refusal)) lost_on_host = std::malloc(16);
    return status;
}

aclnnStatus phase_one(Call call, uint64_t* workspace_size, aclOpExecutor** executor) {
    static const aclIntArray kOnes{{1}};
    const bool takes_null = seeded(Defect::null_dilation_accepted) && call.lists[kKernelSize] != nullptr;
    if (takes_null && call.lists[kDilation] == nullptr) call.lists[kDilation] = &kOnes;
    const Contract& contract = contract_of(*call.family);
    Judgement judgement = judge(contract.before_result_pointers, call);
    if (judgement.status != status::kSuccess) return judgement.status;
    if (workspace_size == nullptr || executor == nullptr) {
        report(text("E", status::kNullPointer, ": ", call.family->name, ": workspaceSize or executor is null"));
        return status::kNullPointer;
    }
    if (seeded(Defect::size_written_on_refusal)) *workspace_size = 0;
    call.determinism = determinism_level();
    const std::string key = plan_cache().is_on() ? key_of(call) : "";
    if (!key.empty()) {
        if (auto plan = plan_cache().find(key)) return give(call, std::move(plan), key, true, workspace_size, executor);
    }
    judgement = judge(contract.rules, call);
    if (judgement.status != status::kSuccess) return refused(judgement.status);
    auto plan = judgement.is_empty ? empty_plan(call) : make_plan(call);
    if (has_defects) plan = mistaken_plan(call, std::move(plan));
    if (plan->refuses_early) {
        report(text("E", status::kInnerNullPointer, ": ", call.family->name, ": ", plan->refusal));
        return status::kInnerNullPointer;
    }
    if (!key.empty()) plan_cache().insert(key, plan);
    return give(call, plan, key, false, workspace_size, executor);
}

Call windowed_backward(const char* api, const aclTensor* gradient, const aclTensor* self, const aclTensor* indices,
                       const aclIntArray* kernel, const aclIntArray* stride, const aclIntArray* padding,
                       const aclIntArray* dilation, bool ceil_mode, const aclTensor* result) {
    Call call{&family_of(api)};
    call.tensors = {gradient, self, indices, result, nullptr};
    call.lists = {kernel, stride, padding, dilation, nullptr};
    call.ceil_mode = ceil_mode;
    return call;
}

Call adaptive_backward(const char* api, const aclTensor* gradient, const aclTensor* self, const aclTensor* indices,
                       const aclTensor* result) {
    Call call{&family_of(api)};
    call.tensors = {gradient, self, indices, result, nullptr};
    return call;
}

Call windowed_forward(const char* api, const aclTensor* self, const aclIntArray* kernel, const aclIntArray* stride,
                      const aclIntArray* padding, const aclIntArray* dilation, bool ceil_mode, const aclTensor* out,
                      const aclTensor* indices) {
    Call call{&family_of(api)};
    call.tensors = {nullptr, self, indices, nullptr, out};
    call.lists = {kernel, stride, padding, dilation, nullptr};
    call.ceil_mode = ceil_mode;
    return call;
}

Call adaptive_forward(const char* api, const aclTensor* self, const aclIntArray* output_size, const aclTensor* out,
                      const aclTensor* indices) {
    Call call{&family_of(api)};
    call.tensors = {nullptr, self, indices, nullptr, out};
    call.lists[kOutputSize] = output_size;
    return call;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

#define PHASE_TWO(API)                                                                                        \
    extern "C" aclnnStatus API(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream stream) { \
        return run_executor(workspace, size, executor, stream);                                               \
    }

#define WINDOWED_BACKWARD(API)                                                                                      \
    extern "C" aclnnStatus API##GetWorkspaceSize(                                                                   \
        const aclTensor* gradient, const aclTensor* self, const aclTensor* indices, const aclIntArray* kernel,      \
        const aclIntArray* stride, const aclIntArray* padding, const aclIntArray* dilation, bool ceil_mode,         \
        aclTensor* result, uint64_t* size, aclOpExecutor** executor) {                                              \
        return phase_one(                                                                                           \
            windowed_backward(#API, gradient, self, indices, kernel, stride, padding, dilation, ceil_mode, result), \
            size, executor);                                                                                        \
    }                                                                                                               \
    PHASE_TWO(API)

#define ADAPTIVE_BACKWARD(API)                                                                                \
    extern "C" aclnnStatus API##GetWorkspaceSize(const aclTensor* gradient, const aclTensor* self,            \
                                                 const aclTensor* indices, aclTensor* result, uint64_t* size, \
                                                 aclOpExecutor** executor) {                                  \
        return phase_one(adaptive_backward(#API, gradient, self, indices, result), size, executor);           \
    }                                                                                                         \
    PHASE_TWO(API)

#define WINDOWED_FORWARD(API)                                                                                      \
    extern "C" aclnnStatus API##GetWorkspaceSize(const aclTensor* self, const aclIntArray* kernel,                 \
                                                 const aclIntArray* stride, const aclIntArray* padding,            \
                                                 const aclIntArray* dilation, bool ceil_mode, aclTensor* out,      \
                                                 aclTensor* indices, uint64_t* size, aclOpExecutor** executor) {   \
        return phase_one(windowed_forward(#API, self, kernel, stride, padding, dilation, ceil_mode, out, indices), \
                         size, executor);                                                                          \
    }                                                                                                              \
    PHASE_TWO(API)

#define ADAPTIVE_FORWARD(API)                                                                           \
    extern "C" aclnnStatus API##GetWorkspaceSize(const aclTensor* self, const aclIntArray* output_size, \
                                                 aclTensor* out, aclTensor* indices, uint64_t* size,    \
                                                 aclOpExecutor** executor) {                            \
        return phase_one(adaptive_forward(#API, self, output_size, out, indices), size, executor);      \
    }                                                                                                   \
    PHASE_TWO(API)

WINDOWED_BACKWARD(aclnnMaxPool3dWithArgmaxBackward)
WINDOWED_BACKWARD(aclnnMaxPool2dWithIndicesBackward)
WINDOWED_BACKWARD(aclnnMaxPool2dWithMaskBackward)
ADAPTIVE_BACKWARD(aclnnAdaptiveMaxPool2dBackward)
ADAPTIVE_BACKWARD(aclnnAdaptiveMaxPool3dBackward)
WINDOWED_FORWARD(aclnnMaxPool3dWithArgmax)
WINDOWED_FORWARD(aclnnMaxPool2dWithIndices)
WINDOWED_FORWARD(aclnnMaxPool2dWithMask)
ADAPTIVE_FORWARD(aclnnAdaptiveMaxPool2d)
ADAPTIVE_FORWARD(aclnnAdaptiveMaxPool3d)
