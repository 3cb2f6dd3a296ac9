// Memory as a kernel sees it: tensors in global memory (GM), and the Unified Buffer (UB) of each core. Every access of the
// API comes through here and is held against what is known of the bytes: whose they are, whether anything was ever
// written there, and which accesses of other pipes, cores or threads nothing orders. It knows bytes and no operation.
#pragma once
#include "types.h"

namespace model {

// The pipes of a vector core that touch memory. [intra-core synchronisation: table 1]
enum class Pipe : uint8_t { scalar, vector, mte2, mte3 };
constexpr int pipe_count = 4;
constexpr uint32_t block_bytes = 32, repeat_bytes = 256;  // a DataBlock; what a vector instruction takes in one repeat

// Where in its source a kernel makes a call: the default argument of every function of the API.
struct Site {
    const char* file;
    int line;
    constexpr Site(const char* file = __builtin_FILE(), int line = __builtin_LINE()) : file(file), line(line) {}
};

// The bytes of UB that a LocalTensor may touch: the buffer that it was taken from.
struct Extent {
    uint8_t* begin = nullptr;
    uint8_t* end = nullptr;
};

// The call to which the following accesses belong, and the pipe that executes it.
void begin(Pipe pipe, const char* name, Site site);

// UB. `reach` is the check of memory (false: there is nothing that could be touched); loads answer whether all bytes are
// defined; a store defines them, and `forget` takes that back where what was stored came of undefined values.
bool reach(const void* address, uint64_t bytes, Extent buffer, bool is_store);
bool load(const void* address, uint64_t bytes);
void store(const void* address, uint64_t bytes);
void forget(const void* address, uint64_t bytes);
bool is_defined(const void* address, uint64_t bytes);
void require_alignment(const void* address, uint32_t bytes = block_bytes);

// GM, one element or one row of a copy. `add` is the addition of an atomic store.
using Addition = void (*)(void* total, const void* value);
bool load_global(void* to, const void* from, uint32_t bytes);
void store_global(void* to, const void* from, uint32_t bytes, bool is_known, Addition add = nullptr);
void copy_in(uint8_t* to, const uint8_t* from, uint64_t bytes, uint32_t itemsize);
void copy_out(uint8_t* to, const uint8_t* from, uint64_t bytes, uint32_t itemsize, Addition add);

// Findings, in the words of the field: memcheck, initcheck, racecheck, synccheck; launchcheck for a tiling key or tiling
// data that the kernel cannot take. `address` is where it happened, in UB or GM, or nullptr.
void report(const char* kind, const char* rule, const void* address = nullptr, const char* detail = "");

// Undefined values may be moved and computed with; they matter where they decide something.
inline void require_defined(bool is_known, const char* rule, const void* address) {
    if (!is_known) report("initcheck", rule, address);
}

}  // namespace model

namespace AscendC {
enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, MAX };
using QuePosition = TPosition;
enum class CacheMode { CACHE_MODE_DISABLE, CACHE_MODE_NORMAL };

// [LocalTensor]
template <class T>
class LocalTensor {
public:
    using PrimType = T;

    LocalTensor() = default;
    LocalTensor(void* address, model::Extent buffer)
        : address_(static_cast<uint8_t*>(address)), buffer_(buffer), size_((buffer.end - address_) / static_cast<int64_t>(sizeof(T))) {}

    LocalTensor operator[](uint64_t offset) const { return LocalTensor(address_ + offset * sizeof(T), buffer_); }
    template <class U>
    LocalTensor<U> ReinterpretCast() const { return LocalTensor<U>(address_, buffer_); }

    // A scalar that a kernel looks at decides what follows: reading an undefined one is an error by itself.
    T GetValue(uint64_t index, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "GetValue", site);
        T value{};
        uint8_t* const from = address_ + index * sizeof(T);
        if (!model::reach(from, sizeof(T), buffer_, false)) return value;
        model::require_defined(model::load(from, sizeof(T)), "a scalar is read from UB that was never written", from);
        std::memcpy(&value, from, sizeof(T));
        return value;
    }
    T operator()(uint64_t index, model::Site site = {}) const { return GetValue(index, site); }
    void SetValue(uint64_t index, model::Same<T> value, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "SetValue", site);
        uint8_t* const to = address_ + index * sizeof(T);
        if (!model::reach(to, sizeof(T), buffer_, true)) return;
        model::store(to, sizeof(T));
        std::memcpy(to, &value, sizeof(T));
    }
    uint64_t GetPhyAddr(uint64_t offset = 0) const { return reinterpret_cast<uint64_t>(address_ + offset * sizeof(T)); }
    uint32_t GetSize() const { return static_cast<uint32_t>(size_); }
    void SetSize(uint32_t size) { size_ = size; }

    uint8_t* address() const { return address_; }
    model::Extent buffer() const { return buffer_; }

private:
    uint8_t* address_ = nullptr;
    model::Extent buffer_;
    int64_t size_ = 0;
};

// [GlobalTensor]. The caches of scalar accesses are not modelled: GetValue sees what SetValue left at once.
template <class T>
class GlobalTensor {
public:
    using PrimType = T;

    void SetGlobalBuffer(T* address, uint64_t size = 0) { address_ = address, size_ = size; }
    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor part;
        part.SetGlobalBuffer(reinterpret_cast<T*>(reinterpret_cast<uint64_t>(address_) + offset * sizeof(T)), size_);
        return part;
    }
    T GetValue(uint64_t index, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "GetValue", site);
        T value{};
        const T* const from = (*this)[index].address_;
        model::require_defined(model::load_global(&value, from, sizeof(T)), "a scalar is read from global memory that was never written", from);
        return value;
    }
    T operator()(uint64_t index, model::Site site = {}) const { return GetValue(index, site); }
    void SetValue(uint64_t index, model::Same<T> value, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "SetValue", site);
        model::store_global((*this)[index].address_, &value, sizeof(T), true);
    }
    T* GetPhyAddr(uint64_t offset = 0) const { return (*this)[offset].address_; }
    uint64_t GetSize() const { return size_; }
    template <class Mode>
    void SetL2CacheHint(Mode) {}

private:
    T* address_ = nullptr;
    uint64_t size_ = 0;
};
}  // namespace AscendC
