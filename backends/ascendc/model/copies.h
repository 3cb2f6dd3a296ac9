// Copies between GM and UB, by rows of bytes: DataCopy, DataCopyPad with its padding and loops, and the atomic operations that a
// copy to GM may carry. What a row does to memory is memory.h; here are the layouts of the documents.
#pragma once
#include "pipes.h"

namespace AscendC {

// [DataCopy(GM and UB, sliced): table 3]: lengths and gaps in blocks of 32 bytes. In DataCopyPad lengths are bytes.
struct DataCopyParams {
    uint16_t blockCount = 1, blockLen = 0;
    union { uint16_t srcStride = 0, srcGap; };
    union { uint16_t dstStride = 0, dstGap; };
    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t length, uint16_t source_gap, uint16_t destination_gap)
        : blockCount(count), blockLen(length), srcStride(source_gap), dstStride(destination_gap) {}
};

// [DataCopyPad(GMToUB): table 3]: in bytes, but the stride of UB in blocks; 64 bits wide on 950, where they may be negative.
#if __CCE_AICORE__ == 310
using CopyStride = int64_t;
#else
using CopyStride = uint32_t;
#endif
struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    CopyStride srcStride = 0, dstStride = 0;
    uint32_t rsv = 0;
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, CopyStride source_stride, CopyStride destination_stride, uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(source_stride), dstStride(destination_stride), rsv(reserved) {}
};
template <class T>
struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue = T(0);
    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool is_pad, uint8_t left, uint8_t right, T value)
        : isPad(is_pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

// [SetLoopModePara: table 2]
struct LoopModeParams {
    uint32_t loop1Size = 1, loop2Size = 1;
    uint64_t loop1SrcStride = 0, loop1DstStride = 0, loop2SrcStride = 0, loop2DstStride = 0;
};
enum class DataCopyMVType : uint8_t { UB_TO_OUT = 0, OUT_TO_UB };

}  // namespace AscendC

namespace model {

// What scalar instructions have set for later copies of the core.
struct CopyState {
    AscendC::LoopModeParams loops[2];  // by DataCopyMVType
    Addition addition = nullptr;
    uint32_t addition_bytes = 0;
};
CopyState& copy_state();
void occupy_buffer();  // InitGlobalMemory passes its value through UB

struct Rows {
    uint64_t count, bytes;
    int64_t source_step, destination_step;  // from the begin of a row to that of the next
};

inline void check_rows(const Rows& rows, uint64_t itemsize) {
    if (rows.count > 4095) report("memcheck", "a copy of more than 4095 blocks: blockCount");
    if (rows.bytes % itemsize) report("memcheck", "a copy whose blockLen is no multiple of the element");
}

template <class Copy>
void repeat_rows(AscendC::DataCopyMVType way, uint8_t* to, const uint8_t* from, const Rows& rows, Copy copy) {
    if (!rows.count || !rows.bytes) return;  // [DataCopyPad: constraints]: no operation
    const AscendC::LoopModeParams& loops = copy_state().loops[static_cast<int>(way)];
    for (uint64_t outer = 0; outer < loops.loop2Size; ++outer) {
        for (uint64_t inner = 0; inner < loops.loop1Size; ++inner) {
            const uint64_t source = outer * loops.loop2SrcStride + inner * loops.loop1SrcStride;
            const uint64_t destination = outer * loops.loop2DstStride + inner * loops.loop1DstStride;
            for (int64_t row = 0; row < static_cast<int64_t>(rows.count); ++row) {
                copy(reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t>(to) + destination + row * rows.destination_step),
                     reinterpret_cast<const uint8_t*>(reinterpret_cast<uint64_t>(from) + source + row * rows.source_step));
            }
        }
    }
}

template <class T>
void rows_out(const AscendC::GlobalTensor<T>& to, const AscendC::LocalTensor<T>& from, const Rows& rows) {
    check_rows(rows, sizeof(T));
    require_alignment(from.address());
    const CopyState& state = copy_state();
    const auto itemsize = static_cast<uint32_t>(state.addition ? state.addition_bytes : sizeof(T));
    repeat_rows(AscendC::DataCopyMVType::UB_TO_OUT, reinterpret_cast<uint8_t*>(to.GetPhyAddr()), from.address(), rows,
                [&](uint8_t* row_to, const uint8_t* row_from) {
                    if (reach(row_from, rows.bytes, from.buffer(), false)) copy_out(row_to, row_from, rows.bytes, itemsize, state.addition);
                });
}

// A row of GM with what fills it up to whole blocks of UB: the padding, and a dummy behind it. [DataCopyPad(GMToUB): table 4]
template <class T>
struct Padding {
    uint64_t left = 0, right = 0;  // bytes
    bool is_given = false;
    T value = T(0);
};
template <class T>
void rows_in(const AscendC::LocalTensor<T>& to, const AscendC::GlobalTensor<T>& from, const Rows& rows, const Padding<T>& padding = {}) {
    check_rows(rows, sizeof(T));
    require_alignment(to.address());
    if (padding.left > 32 || padding.right > 32) report("memcheck", "a copy pads more than 32 bytes on one side");
    const uint64_t used = padding.left + rows.bytes + padding.right, full = (used + 31) / 32 * 32;
    repeat_rows(AscendC::DataCopyMVType::OUT_TO_UB, to.address(), reinterpret_cast<const uint8_t*>(from.GetPhyAddr()), rows,
                [&](uint8_t* row_to, const uint8_t* row_from) {
                    if (!reach(row_to, full, to.buffer(), true)) return;
                    copy_in(row_to + padding.left, row_from, rows.bytes, sizeof(T));
                    const bool repeats_first = !padding.is_given && used == rows.bytes;  // else random, unless a value is given
                    const auto fill = [&](uint8_t* place, uint64_t bytes) {
                        if (!bytes) return;
                        store(place, bytes);
                        for (uint64_t i = 0; i < bytes; i += sizeof(T)) {
                            std::memcpy(place + i, repeats_first ? static_cast<const void*>(row_to) : &padding.value, std::min(sizeof(T), bytes - i));
                        }
                        if (!padding.is_given && (!repeats_first || !is_defined(row_to, sizeof(T)))) forget(place, bytes);
                    };
                    fill(row_to, padding.left);
                    fill(row_to + padding.left + rows.bytes, full - padding.left - rows.bytes);
                });
}
}  // namespace model

namespace AscendC {

inline void SetLoopModePara(const LoopModeParams& loops, DataCopyMVType way) { model::copy_state().loops[static_cast<int>(way)] = loops; }
inline void ResetLoopModePara(DataCopyMVType way) { SetLoopModePara(LoopModeParams(), way); }

// [SetAtomicAdd]: the sum is that of the type of the template, whatever the copy's type.
template <class T>
void SetAtomicAdd() {
    model::CopyState& state = model::copy_state();
    state.addition_bytes = sizeof(T);
    state.addition = [](void* total, const void* value) {
        T sum, term;
        std::memcpy(&sum, total, sizeof(T));
        std::memcpy(&term, value, sizeof(T));
        sum = model::add(sum, term);
        std::memcpy(total, &sum, sizeof(T));
    };
}
inline void DisableDmaAtomic() { model::copy_state().addition = nullptr; }
inline void SetAtomicNone() { DisableDmaAtomic(); }

template <class T>
void DataCopyPad(const GlobalTensor<T>& to, const LocalTensor<T>& from, const DataCopyExtParams& p, model::Site site = {}) {
    model::begin(model::Pipe::mte3, "DataCopyPad", site);
    const int64_t row = (int64_t{p.blockLen} + 31) / 32 * 32 + static_cast<int64_t>(p.srcStride) * 32;
    model::rows_out(to, from, {p.blockCount, p.blockLen, row, static_cast<int64_t>(p.blockLen + p.dstStride)});
}
template <class T>
void DataCopyPad(const GlobalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site = {}) {
    DataCopyPad(to, from, DataCopyExtParams(p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0), site);
}
template <class T>
void DataCopyPad(const LocalTensor<T>& to, const GlobalTensor<T>& from, const DataCopyExtParams& p, const DataCopyPadExtParams<T>& pad,
                 model::Site site = {}) {
    model::begin(model::Pipe::mte2, "DataCopyPad", site);
    const model::Padding<T> padding{pad.leftPadding * sizeof(T), pad.rightPadding * sizeof(T), pad.isPad, pad.paddingValue};
    const int64_t row = static_cast<int64_t>((padding.left + p.blockLen + padding.right + 31) / 32 * 32) + static_cast<int64_t>(p.dstStride) * 32;
    model::rows_in(to, from, {p.blockCount, p.blockLen, static_cast<int64_t>(p.blockLen + p.srcStride), row}, padding);
}
// [DataCopy(GM and UB, sliced)], [DataCopy(GM and UB, continuous)]: a count is rounded down to whole blocks.
inline model::Rows rows_of(const DataCopyParams& p) {
    return {p.blockCount, p.blockLen * 32u, (p.blockLen + p.srcStride) * 32, (p.blockLen + p.dstStride) * 32};
}
template <class T>
void DataCopy(const GlobalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site = {}) {
    model::begin(model::Pipe::mte3, "DataCopy", site);
    model::rows_out(to, from, rows_of(p));
}
template <class T>
void DataCopy(const LocalTensor<T>& to, const GlobalTensor<T>& from, const DataCopyParams& p, model::Site site = {}) {
    model::begin(model::Pipe::mte2, "DataCopy", site);
    model::rows_in(to, from, rows_of(p));
}
template <class T>
void DataCopy(const LocalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site = {});  // on the vector pipe
template <class To, class From>
void DataCopy(const To& to, const From& from, uint32_t count, model::Site site = {}) {
    DataCopy(to, from, DataCopyParams(1, static_cast<uint16_t>(count * sizeof(typename To::PrimType) / 32), 0, 0), site);
}

// Fills GM by way of UB. Whoever uses UB afterwards waits for its copies; it may only be called before InitBuffer.
// [CANN 8.3 API reference, InitGlobalMemory: constraints]
template <class T>
void InitGlobalMemory(const GlobalTensor<T>& to, uint64_t size, model::Same<T> value, model::Site site = {}) {
    model::begin(model::Pipe::mte3, "InitGlobalMemory", site);
    model::occupy_buffer();
    for (uint64_t i = 0; i < size; ++i) model::store_global(to.GetPhyAddr(i), &value, sizeof(T), true, nullptr);
}
}  // namespace AscendC
