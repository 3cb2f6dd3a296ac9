// Copies between GM and UB, by rows of bytes: DataCopy, DataCopyPad with its padding and loops, and the atomic operations that
// a copy to GM may carry. What a row does to memory is memory.h; here are the layouts of the documents.
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
using CopyStride = std::conditional_t<__CCE_AICORE__ == 310, int64_t, uint32_t>;
struct DataCopyExtParams {
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    CopyStride srcStride = 0, dstStride = 0;
    uint32_t rsv = 0;
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, CopyStride source, CopyStride destination, uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(source), dstStride(destination), rsv(reserved) {}
};
template <class T> struct DataCopyPadExtParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue = T(0);
    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool is_pad, uint8_t left, uint8_t right, T value)
        : isPad(is_pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
};

// [SetLoopModePara: table 2]: strides in bytes.
struct LoopModeParams {
    uint32_t loop1Size = 1, loop2Size = 1;
    uint64_t loop1SrcStride = 0, loop1DstStride = 0, loop2SrcStride = 0, loop2DstStride = 0;
};
// [DataCopyPad(GMToUB): table 1]. Compact: rows follow each other, and only behind the last one its block is filled.
enum class PaddingMode : uint8_t { Normal = 0, Compact };
enum class DataCopyMVType : uint8_t { UB_TO_OUT = 0, OUT_TO_UB };

}  // namespace AscendC

namespace model {

// What scalar instructions have set for later copies of the core.
struct CopyState {
    AscendC::LoopModeParams loops[2];  // by DataCopyMVType
    Addition addition;
    int64_t keeps_infinities = 0;  // CTRL[48]
    uint32_t ctrl_call = 0;        // that set it
};
CopyState& copy_state();
void occupy_ub();  // InitGlobalMemory passes its value through UB

struct Rows {
    uint64_t count, bytes;
    int64_t from_step, to_step;  // from the begin of a row to that of the next
};

template <class Copy>
void each_row(AscendC::DataCopyMVType way, uint8_t* to, uint8_t* from, const Rows& rows, Copy copy) {
    if (rows.count > 4095) report("memcheck", "a copy of more than 4095 blocks: blockCount");
    if (!rows.bytes) return;  // [DataCopyPad: constraints]: no operation
    const AscendC::LoopModeParams& loops = copy_state().loops[static_cast<int>(way)];
    for (uint64_t outer = 0; outer < loops.loop2Size; ++outer) {
        for (uint64_t inner = 0; inner < loops.loop1Size; ++inner) {
            uint8_t* row_to = advance(to, outer * loops.loop2DstStride + inner * loops.loop1DstStride);
            uint8_t* row_from = advance(from, outer * loops.loop2SrcStride + inner * loops.loop1SrcStride);
            for (uint64_t row = 0; row < rows.count; ++row) {
                copy(advance(row_to, row * static_cast<uint64_t>(rows.to_step)),
                     advance(row_from, row * static_cast<uint64_t>(rows.from_step)), row + 1 == rows.count);
            }
        }
    }
}

template <class T>
void rows_out(const AscendC::GlobalTensor<T>& to, const AscendC::LocalTensor<T>& from, const Rows& rows) {
    require_alignment(from.address());
    const auto copy = [&](uint8_t* row_to, uint8_t* row_from, bool) {
        for (uint64_t at = 0; at < rows.bytes; at += repeat_bytes) {
            const auto size = static_cast<uint32_t>(std::min<uint64_t>(repeat_bytes, rows.bytes - at));
            Bytes part;
            load(part, 0, row_from + at, size, from.buffer());
            store_global(row_to + at, part, 0, size, copy_state().addition);
        }
    };
    each_row(AscendC::DataCopyMVType::UB_TO_OUT, reinterpret_cast<uint8_t*>(to.GetPhyAddr()), from.address(), rows, copy);
}

// A row of GM fills whole blocks of UB: padding at both sides, of the value given or random, and behind it a dummy, which
// is the row's first element where neither side is padded, value or not. [DataCopyPad(GMToUB): parameters]
template <class T>
void rows_in(const AscendC::LocalTensor<T>& to, const AscendC::GlobalTensor<T>& from, const Rows& rows,
             const AscendC::DataCopyPadExtParams<T>& padding = {}, bool is_compact = false) {
    require_alignment(to.address());
    const uint64_t left = padding.leftPadding * sizeof(T), end = left + rows.bytes, right = padding.rightPadding * sizeof(T);
    const uint64_t whole = is_compact ? rows.count * rows.bytes : end + right, fill = -whole % block_bytes;
    if (left > block_bytes || right > block_bytes) report("memcheck", "a copy pads more than 32 bytes on one side");
    const auto copy = [&](uint8_t* row_to, uint8_t* row_from, bool is_last) {
        const uint64_t full = end + right + (is_compact && !is_last ? 0 : fill);
        T dummy = padding.paddingValue;
        bool is_known = padding.isPad;
        for (uint64_t at = 0; at < full; at += repeat_bytes) {
            const uint64_t size = std::min<uint64_t>(repeat_bytes, full - at), last = std::min(at + size, end);
            const uint64_t first = std::clamp(left, at, at + size);
            Lanes<T> part;
            if (first < last) load_global(part, first - at, advance(row_from, at + first - at - left), last - first);
            if (!at && !left && !right && !is_compact) dummy = part.get(0), is_known = part.knows(0);
            for (uint64_t i = at; i < at + size; i += sizeof(T)) {
                if (i < left || i >= end) part.set((i - at) / sizeof(T), dummy, is_known);
            }
            store(advance(row_to, at), part, 0, size, to.buffer());
        }
    };
    each_row(AscendC::DataCopyMVType::OUT_TO_UB, to.address(), reinterpret_cast<uint8_t*>(from.GetPhyAddr()), rows, copy);
}
}  // namespace model

namespace AscendC {

inline void SetLoopModePara(const LoopModeParams& loops, DataCopyMVType way) {
    model::copy_state().loops[static_cast<int>(way)] = loops;
}
inline void ResetLoopModePara(DataCopyMVType way) { SetLoopModePara(LoopModeParams(), way); }

// [SetAtomicAdd]: the sum is that of the type of the template, whatever the copy's type.
template <class T> void SetAtomicAdd() { model::copy_state().addition = model::addition_of<T>; }
inline void SetAtomicNone() { model::copy_state().addition = {}; }
inline void DisableDmaAtomic() { SetAtomicNone(); }

template <class T>
void DataCopyPad(const GlobalTensor<T>& to, const LocalTensor<T>& from, const DataCopyExtParams& p, model::Site site = {}) {
    model::begin(model::Pipe::mte3, "DataCopyPad", site);
    const int64_t row = (int64_t{p.blockLen} + 31) / 32 * 32;
    model::rows_out(to, from, {p.blockCount, p.blockLen, row + int64_t{p.srcStride} * 32, p.blockLen + int64_t{p.dstStride}});
}
template <class T>
void DataCopyPad(const GlobalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site = {}) {
    DataCopyPad(to, from, DataCopyExtParams(p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0), site);
}
template <class T, PaddingMode mode = PaddingMode::Normal>
void DataCopyPad(const LocalTensor<T>& to, const GlobalTensor<T>& from, const DataCopyExtParams& p,
                 const DataCopyPadExtParams<T>& padding, model::Site site = {}) {
    model::begin(model::Pipe::mte2, "DataCopyPad", site);
    if (mode == PaddingMode::Compact) {
        const DataCopyPadExtParams<T> value(padding.isPad, 0, 0, padding.paddingValue);
        return model::rows_in(to, from, {p.blockCount, p.blockLen, p.blockLen + int64_t{p.srcStride}, p.blockLen}, value, true);
    }
    const auto bytes = static_cast<int64_t>(p.blockLen + (padding.leftPadding + padding.rightPadding) * sizeof(T));
    const int64_t row = (bytes + 31) / 32 * 32 + int64_t{p.dstStride} * 32;
    model::rows_in(to, from, {p.blockCount, p.blockLen, p.blockLen + int64_t{p.srcStride}, row}, padding);
}
struct DataCopyPadParams {
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    uint64_t paddingValue = 0;  // in the bits of the type
};
template <class T> void DataCopyPad(const LocalTensor<T>& to, const GlobalTensor<T>& from, const DataCopyParams& p,
                                    const DataCopyPadParams& padding, model::Site site = {}) {
    const T value = model::bits_of<T>(static_cast<model::Bits_of<T>>(padding.paddingValue));
    DataCopyPad(to, from, DataCopyExtParams(p.blockCount, p.blockLen, p.srcStride, p.dstStride, 0),
                DataCopyPadExtParams<T>(padding.isPad, padding.leftPadding, padding.rightPadding, value), site);
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
void DataCopy(const LocalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site = {});  // by V
template <class To, class From> void DataCopy(const To& to, const From& from, uint32_t count, model::Site site = {}) {
    DataCopy(to, from, DataCopyParams(1, static_cast<uint16_t>(count * sizeof(typename To::PrimType) / 32), 0, 0), site);
}

// Fills GM by way of UB: whoever uses UB afterwards waits for its copies, and it may only be called before InitBuffer.
// [CANN 8.3 API reference, InitGlobalMemory: constraints]
template <class T>
void InitGlobalMemory(const GlobalTensor<T>& to, uint64_t size, model::Same<T> element, model::Site site = {}) {
    model::begin(model::Pipe::mte3, "InitGlobalMemory", site);
    model::occupy_ub();
    model::Lanes<T> value;
    for (uint32_t lane = 0; lane < value.count; ++lane) value.set(lane, element);
    for (uint64_t i = 0; i < size; i += value.count) {
        model::store_global(to.GetPhyAddr(i), value, 0, sizeof(T) * std::min<uint64_t>(value.count, size - i));
    }
}
}  // namespace AscendC
