// Device and host memory as callers see it: allocation, copies and fills.
//
// Stricter than a device in one respect: the side that a copy kind calls device memory must be a living device
// block of sufficient size, because a real device reports such a mistake late, or never.
#include <array>
#include <cstdlib>
#include <cstring>
#include <set>

#include "census.h"
#include "context.h"
#include "errors.h"
#include "heap.h"

namespace emulator {
namespace {

// Placement wishes of the allocation policy enum; none makes a difference here.
constexpr std::array<int, 11> kPolicies = {0, 1, 2, 3, 4, 5, 6, 7, 0x100, 0x1000, 0x100000};
constexpr int kMemoryAttributes = 6;

class HostBlocks {
  public:
    void add(void* address) {
        const std::lock_guard lock(mutex_);
        living_.insert(address);
        born(Kind::kHostBlock);
    }
    bool remove(void* address) {
        const std::lock_guard lock(mutex_);
        if (living_.erase(address) == 0) return false;
        gone(Kind::kHostBlock);
        return true;
    }

  private:
    std::mutex mutex_;
    std::set<void*> living_;
};

HostBlocks host_blocks;

bool writes_device(aclrtMemcpyKind kind) {
    return kind == ACL_MEMCPY_HOST_TO_DEVICE || (kind >= ACL_MEMCPY_DEVICE_TO_DEVICE && kind != ACL_MEMCPY_DEFAULT);
}

bool reads_device(aclrtMemcpyKind kind) {
    return kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE ||
           kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE || kind == ACL_MEMCPY_INTER_DEVICE_TO_DEVICE;
}

int check_device_side(const char* side, const void* address, size_t count) {
    if (heap().contains(address, count)) return status::kSuccess;
    const char* what = heap().is_released(address) ? "was freed" : "is not a device block of that size";
    return fail(status::kRtInvalidValue, text("copy of ", count, " bytes: the ", side, " ", what));
}

int check_copy(void* destination, size_t capacity, const void* source, size_t count, aclrtMemcpyKind kind) {
    if (destination == nullptr || source == nullptr) return fail(status::kInvalidParam, "copy: a pointer is null");
    if (count > capacity) return fail(status::kInvalidParam, text("copy of ", count, " bytes into ", capacity));
    if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_INTER_DEVICE_TO_DEVICE) {
        return fail(status::kInvalidParam, text("copy: no such kind ", kind));
    }
    std::shared_ptr<Context> context;
    int status = require_context(&context);
    if (status == status::kSuccess && writes_device(kind))
        status = check_device_side("destination", destination, count);
    if (status == status::kSuccess && reads_device(kind)) status = check_device_side("source", source, count);
    return status;
}

int check_fill(void* address, size_t capacity, size_t count) {
    if (address == nullptr) return fail(status::kInvalidParam, "fill: the pointer is null");
    if (count > capacity) return fail(status::kInvalidParam, text("fill of ", count, " bytes in ", capacity));
    std::shared_ptr<Context> context;
    const int status = require_context(&context);
    return status == status::kSuccess ? check_device_side("destination", address, count) : status;
}

int enqueue(aclrtStream handle, Stream::Task task) {
    std::shared_ptr<Context> context;
    const int status = require_context(&context);
    if (status != status::kSuccess) return status;
    const std::shared_ptr<Stream> stream = context->stream(handle);
    if (stream == nullptr) return fail(status::kRtStreamContext, "the stream is not one of the current context");
    stream->enqueue(std::move(task));
    return status::kSuccess;
}

bool is_policy(int policy) {
    for (const int known : kPolicies) {
        if (policy == known) return true;
    }
    return false;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" aclError aclrtMalloc(void** address, size_t size, int policy) {
    if (address == nullptr) return fail(status::kInvalidParam, "aclrtMalloc: the result pointer is null");
    if (size == 0) return fail(status::kInvalidParam, "aclrtMalloc: the size is 0");
    if (!is_policy(policy)) return fail(status::kInvalidParam, text("aclrtMalloc: no such policy ", policy));
    std::shared_ptr<Context> context;
    int status = require_context(&context);
    if (status != status::kSuccess) return status;
    status = heap().allocate(context->device(), size, address);
    return status == status::kSuccess ? status : fail(status, text("no device memory for ", size, " bytes"));
}

extern "C" aclError aclrtMallocAlign32(void** address, size_t size, int policy) {
    return aclrtMalloc(address, size, policy);
}

extern "C" aclError aclrtFree(void* address) {
    if (address == nullptr) return fail(status::kInvalidParam, "aclrtFree: the pointer is null");
    if (heap().release(address)) return status::kSuccess;
    return fail(status::kRtMemoryFree, heap().is_released(address) ? "aclrtFree: the block was freed before"
                                                                   : "aclrtFree: not the start of a device block");
}

extern "C" aclError aclrtMallocHost(void** address, size_t size) {
    if (address == nullptr || size == 0) return fail(status::kInvalidParam, "aclrtMallocHost: null pointer or size 0");
    *address = std::malloc(size);
    if (*address == nullptr) return fail(status::kHostAllocation, text("no host memory for ", size, " bytes"));
    host_blocks.add(*address);
    return status::kSuccess;
}

extern "C" aclError aclrtFreeHost(void* address) {
    if (address == nullptr) return fail(status::kInvalidParam, "aclrtFreeHost: the pointer is null");
    if (!host_blocks.remove(address))
        return fail(status::kRtMemoryFree, "aclrtFreeHost: not a block of aclrtMallocHost");
    std::free(address);
    return status::kSuccess;
}

extern "C" aclError aclrtMemcpy(void* destination, size_t capacity, const void* source, size_t count,
                                aclrtMemcpyKind kind) {
    if (count == 0) return status::kSuccess;
    const int status = check_copy(destination, capacity, source, count, kind);
    if (status == status::kSuccess) std::memmove(destination, source, count);
    return status;
}

extern "C" aclError aclrtMemcpyAsync(void* destination, size_t capacity, const void* source, size_t count,
                                     aclrtMemcpyKind kind, aclrtStream stream) {
    if (count == 0) return status::kSuccess;
    const int status = check_copy(destination, capacity, source, count, kind);
    if (status != status::kSuccess) return status;
    return enqueue(stream, [=] {
        std::memmove(destination, source, count);
        return status::kSuccess;
    });
}

extern "C" aclError aclrtMemset(void* address, size_t capacity, int32_t value, size_t count) {
    if (count == 0) return status::kSuccess;
    const int status = check_fill(address, capacity, count);
    if (status == status::kSuccess) std::memset(address, value, count);
    return status;
}

extern "C" aclError aclrtMemsetAsync(void* address, size_t capacity, int32_t value, size_t count, aclrtStream stream) {
    if (count == 0) return status::kSuccess;
    const int status = check_fill(address, capacity, count);
    if (status != status::kSuccess) return status;
    return enqueue(stream, [=] {
        std::memset(address, value, count);
        return status::kSuccess;
    });
}

extern "C" aclError aclrtGetMemInfo(int attribute, size_t* free_bytes, size_t* total_bytes) {
    if (free_bytes == nullptr || total_bytes == nullptr) {
        return fail(status::kInvalidParam, "aclrtGetMemInfo: a result pointer is null");
    }
    if (attribute < 0 || attribute >= kMemoryAttributes) {
        return fail(status::kInvalidParam, text("aclrtGetMemInfo: no such attribute ", attribute));
    }
    std::shared_ptr<Context> context;
    const int status = require_context(&context);
    if (status != status::kSuccess) return status;
    *total_bytes = heap().total();
    *free_bytes = *total_bytes - heap().used(context->device());
    return status::kSuccess;
}
