// Device memory: which addresses belong to the device, and how much of it is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace emulator {

// Blocks are ordinary heap blocks of exactly the padded size, so that AddressSanitizer sees an overrun, and their
// content is never zero, so that nothing can rely on clean memory.
class Heap {
  public:
    // Success, or the status of an exhausted device.
    int allocate(int device, size_t size, void** address);
    // False where `address` is not the start of a living block.
    bool release(void* address);
    void release_all(int device);

    // Whether [address, address + size) lies inside what was asked for in one allocation.
    bool contains(const void* address, size_t size) const;
    // Whether `address` lies in a block that has been released, and not been handed out again since.
    bool is_released(const void* address) const;

    size_t total() const;
    size_t used(int device) const;

  private:
    struct Block {
        size_t size;    // as asked for
        size_t padded;  // as charged
        int device;
    };
    using Blocks = std::map<uintptr_t, Block>;

    static const Blocks::value_type* holding(const Blocks& blocks, uintptr_t address);
    void forget_released(uintptr_t start, size_t size);

    mutable std::mutex mutex_;
    Blocks living_;
    Blocks released_;
    std::map<int, size_t> used_;
};

Heap& heap();

}  // namespace emulator
