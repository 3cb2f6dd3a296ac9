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

// The bytes of UB that a LocalTensor may touch: the buffer that it was taken from; none: all of UB.
struct Extent {
    uint8_t* begin = nullptr;
    uint8_t* end = nullptr;
};

struct Bits {
    uint64_t words[5] = {};  // 256 bits, and some behind them that stay 0

    static Bits first(uint64_t count) {
        Bits bits;
        for (uint64_t i = 0; i < count; i += 64) bits.set(i, std::min<uint64_t>(count - i, 64), true);
        return bits;
    }
    bool operator[](uint32_t bit) const { return words[bit / 64] >> bit % 64 & 1; }
    bool any() const { return words[0] | words[1] | words[2] | words[3]; }
    bool any(uint32_t first, uint32_t count) const { return from(first) << (32 - count); }
    uint32_t from(uint32_t first) const {  // 32 bits
        const uint64_t bits = words[first / 64] >> first % 64;
        return static_cast<uint32_t>(first % 64 <= 32 ? bits : bits | words[first / 64 + 1] << (64 - first % 64));
    }
    void add(uint32_t first, uint32_t bits) {
        words[first / 64] |= uint64_t{bits} << first % 64;
        if (first % 64 > 32) words[first / 64 + 1] |= bits >> (64 - first % 64);
    }
    void add(const Bits& others) {
        for (int word = 0; word < 4; ++word) words[word] |= others.words[word];
    }
    void set(uint32_t first, uint32_t count, bool is_on) {  // within one word
        const uint64_t mask = ~uint64_t{0} >> (64 - count) << first % 64;
        words[first / 64] = is_on ? words[first / 64] | mask : words[first / 64] & ~mask;
    }
};

// Bytes between memory and an instruction, and which of them hang on what was never written.
struct Bytes {
    alignas(32) uint8_t value[repeat_bytes] = {};
    Bits unknown;
};
template <class T> struct Lanes : Bytes {
    static constexpr uint32_t count = repeat_bytes / sizeof(T);

    T get(uint32_t lane) const {
        T element;
        std::memcpy(&element, value + lane * sizeof(T), sizeof(T));
        return element;
    }
    bool knows(uint32_t lane) const { return !unknown.any(lane * sizeof(T), sizeof(T)); }
    void set(uint32_t lane, T element) { std::memcpy(value + lane * sizeof(T), &element, sizeof(T)); }
    void set(uint32_t lane, T element, bool is_known) {
        set(lane, element);
        unknown.set(lane * sizeof(T), sizeof(T), !is_known);
    }
};

// An addition that a store to GM makes instead of a copy.
struct Addition {
    void (*add)(void* total, const void* term) = nullptr;
    uint32_t bytes = 0;
};
template <class T> void add_to(void* total, const void* term) {
    T sum, addend;
    std::memcpy(&sum, total, sizeof(T));
    std::memcpy(&addend, term, sizeof(T));
    sum = add(sum, addend);
    std::memcpy(total, &sum, sizeof(T));
}
template <class T> constexpr Addition addition_of{add_to<T>, sizeof(T)};

// The call to which the following accesses belong, and the pipe that executes it.
void begin(Pipe pipe, const char* name, Site site);

// Accesses of at most 256 bytes; `at` is the place in Bytes. What cannot be reached is not stored, and loaded as unknown.
void load(Bytes& to, uint32_t at, const void* from, uint32_t bytes, Extent buffer);
void store(void* to, const Bytes& from, uint32_t at, uint32_t bytes, Extent buffer);
void forget_load();  // the call before loaded what is not used: no store has to wait for it
void load_global(Bytes& to, uint32_t at, const void* from, uint32_t bytes);
void store_global(void* to, const Bytes& from, uint32_t at, uint32_t bytes, Addition addition = {});
void require_alignment(const void* address, uint32_t bytes = block_bytes);  // of an operand in UB

// Findings, in the words of the field: memcheck, initcheck, racecheck, synccheck; launchcheck for a tiling key or tiling
// data that the kernel cannot take. `address` is where it happened, in UB or GM, or nullptr.
void report(const char* kind, const char* what, const void* address = nullptr);

// Undefined values may be moved and computed with; they matter where they decide something.
inline void require_defined(bool is_known, const char* what, const void* address) {
    if (!is_known) report("initcheck", what, address);
}
template <class T> T* advance(T* address, uint64_t elements) {  // defined for any address
    return reinterpret_cast<T*>(reinterpret_cast<uint64_t>(address) + elements * sizeof(T));
}
}  // namespace model

namespace AscendC {
enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, MAX };
using QuePosition = TPosition;
enum class CacheMode { CACHE_MODE_DISABLE, CACHE_MODE_NORMAL };

// [LocalTensor]
template <class T> class LocalTensor {
public:
    using PrimType = T;

    LocalTensor() = default;
    LocalTensor(void* address, model::Extent buffer) : address_(static_cast<T*>(address)), buffer_(buffer) {}

    LocalTensor operator[](uint64_t offset) const { return LocalTensor(model::advance(address_, offset), buffer_); }
    template <class U> LocalTensor<U> ReinterpretCast() const { return LocalTensor<U>(address_, buffer_); }

    T GetValue(uint64_t index, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "GetValue", site);
        model::Lanes<T> value;
        model::load(value, 0, (*this)[index].address_, sizeof(T), buffer_);
        model::require_defined(value.knows(0), "a scalar is read from UB that was never written", (*this)[index].address_);
        return value.get(0);
    }
    T operator()(uint64_t index, model::Site site = {}) const { return GetValue(index, site); }
    void SetValue(uint64_t index, model::Same<T> element, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "SetValue", site);
        model::Lanes<T> value;
        value.set(0, element);
        model::store((*this)[index].address_, value, 0, sizeof(T), buffer_);
    }
    uint64_t GetPhyAddr(uint64_t offset = 0) const { return reinterpret_cast<uint64_t>((*this)[offset].address_); }
    uint32_t GetSize() const { return size_ ? size_ : static_cast<uint32_t>(buffer_.end - address()) / sizeof(T); }
    void SetSize(uint32_t size) { size_ = size; }

    uint8_t* address() const { return reinterpret_cast<uint8_t*>(address_); }
    model::Extent buffer() const { return buffer_; }

private:
    T* address_ = nullptr;
    model::Extent buffer_;
    uint32_t size_ = 0;
};

// [GlobalTensor]. The caches of scalar accesses are not modelled: GetValue sees what SetValue left at once.
template <class T> class GlobalTensor {
public:
    using PrimType = T;

    void SetGlobalBuffer(T* address, uint64_t size = 0) { address_ = address, size_ = size; }
    GlobalTensor operator[](uint64_t offset) const {
        GlobalTensor part;
        part.SetGlobalBuffer(GetPhyAddr(offset), size_);
        return part;
    }
    T GetValue(uint64_t index, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "GetValue", site);
        model::Lanes<T> value;
        model::load_global(value, 0, GetPhyAddr(index), sizeof(T));
        model::require_defined(value.knows(0), "a scalar is read from GM that was never written", GetPhyAddr(index));
        return value.get(0);
    }
    T operator()(uint64_t index, model::Site site = {}) const { return GetValue(index, site); }
    void SetValue(uint64_t index, model::Same<T> element, model::Site site = {}) const {
        model::begin(model::Pipe::scalar, "SetValue", site);
        model::Lanes<T> value;
        value.set(0, element);
        model::store_global(GetPhyAddr(index), value, 0, sizeof(T));
    }
    T* GetPhyAddr(uint64_t offset = 0) const { return model::advance(address_, offset); }
    uint64_t GetSize() const { return size_; }
    void SetL2CacheHint(CacheMode) {}

private:
    T* address_ = nullptr;
    uint64_t size_ = 0;
};
}  // namespace AscendC
