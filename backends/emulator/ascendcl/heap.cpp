#include "heap.h"

#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "census.h"
#include "environment.h"
#include "errors.h"
#include "product.h"

namespace emulator {
namespace {

// Memory page of aclrtMalloc: addresses are at least 64-byte aligned, sizes are rounded up to 32 bytes.
constexpr size_t kAlignment = 64;
constexpr size_t kGranularity = 32;

constexpr int64_t kDefaultTotal = int64_t{8} << 30;

// New memory reads as NaN in every floating format and as -1 in every integer one. Large blocks are so at both ends
// only: touching all of a 16 MiB workspace costs more than the calls that use it.
constexpr int kDirt = 0xFF;
constexpr size_t kDirtiedEnd = size_t{256} << 10;

// Enough to catch a use after free; the bound keeps a long run from growing, and is soon reached.
constexpr size_t kReleasedRemembered = 256;

// Large blocks go back to the system when they are freed. Left to itself the host's allocator keeps them, and cannot
// use them again for a request of the same aligned size (glibc before 2.38): a long run would grow by every workspace.
constexpr int kLargestKept = 1 << 20;

size_t charge(size_t size) {
    return (size + kGranularity - 1) / kGranularity * kGranularity + product().allocation_guard;
}

void dirty(char* block, size_t size) {
    if (size <= 2 * kDirtiedEnd) {
        std::memset(block, kDirt, size);
    } else {
        std::memset(block, kDirt, kDirtiedEnd);
        std::memset(block + size - kDirtiedEnd, kDirt, kDirtiedEnd);
    }
}

}  // namespace

int Heap::allocate(int device, size_t size, void** address) {
    const size_t padded = charge(size);
    const std::lock_guard lock(mutex_);
    if (padded < size || padded > total()) return status::kRtMemoryAllocation;
    if (padded > total() - used_[device]) return status::kRtDeviceOutOfMemory;
    if (posix_memalign(address, kAlignment, padded) != 0) return status::kRtMemoryAllocation;
    dirty(static_cast<char*>(*address), padded);
    const auto start = reinterpret_cast<uintptr_t>(*address);
    forget_released(start, padded);
    living_[start] = {size, padded, device};
    used_[device] += padded;
    born(Kind::kDeviceBlock);
    return status::kSuccess;
}

bool Heap::release(void* address) {
    const std::lock_guard lock(mutex_);
    const auto block = living_.find(reinterpret_cast<uintptr_t>(address));
    if (block == living_.end()) return false;
    used_[block->second.device] -= block->second.padded;
    if (released_.size() == kReleasedRemembered) released_.erase(released_.begin());
    released_.insert(*block);
    living_.erase(block);
    std::free(address);
    gone(Kind::kDeviceBlock);
    return true;
}

void Heap::release_all(int device) {
    std::vector<void*> addresses;
    {
        const std::lock_guard lock(mutex_);
        for (const auto& [start, block] : living_) {
            if (block.device == device) addresses.push_back(reinterpret_cast<void*>(start));
        }
    }
    for (void* address : addresses) release(address);
}

bool Heap::contains(const void* address, size_t size) const {
    const auto start = reinterpret_cast<uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    const auto* block = holding(living_, start);
    return block != nullptr && size <= block->second.size && start - block->first <= block->second.size - size;
}

bool Heap::is_released(const void* address) const {
    const auto start = reinterpret_cast<uintptr_t>(address);
    const std::lock_guard lock(mutex_);
    return holding(living_, start) == nullptr && holding(released_, start) != nullptr;
}

size_t Heap::total() const {
    static const auto bytes = static_cast<size_t>(environment_number("POOLPROOF_EMULATOR_MEMORY", kDefaultTotal));
    return bytes;
}

size_t Heap::used(int device) const {
    const std::lock_guard lock(mutex_);
    const auto found = used_.find(device);
    return found == used_.end() ? 0 : found->second;
}

const Heap::Blocks::value_type* Heap::holding(const Blocks& blocks, uintptr_t address) {
    auto after = blocks.upper_bound(address);
    if (after == blocks.begin()) return nullptr;
    const auto& block = *--after;
    return address - block.first < block.second.padded ? &block : nullptr;
}

// The host's allocator hands released addresses out again; they are then no longer stale.
void Heap::forget_released(uintptr_t start, size_t size) {
    auto block = released_.upper_bound(start);
    if (block != released_.begin()) {
        const auto before = std::prev(block);
        if (start - before->first < before->second.padded) block = before;
    }
    while (block != released_.end() && block->first < start + size) block = released_.erase(block);
}

Heap& heap() {
    static Heap& instance = *[] {
        mallopt(M_MMAP_THRESHOLD, kLargestKept);
        return new Heap;  // never destroyed: worker threads may outlive static destructors
    }();
    return instance;
}

}  // namespace emulator
