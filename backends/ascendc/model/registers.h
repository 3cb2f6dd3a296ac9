// The vector functions of 950, which work on registers (AscendC::Reg, formerly MicroAPI): registers and masks by lanes, loads and
// stores, and the order of those within one vector function, where only a LocalMemBar makes a load wait for a store.
#pragma once
#include "vector.h"

#define __VEC_SCOPE__ for (bool is_first = (::model::enter_vector_function(), true); is_first; is_first = false)

namespace model {

void enter_vector_function();  // vector functions follow each other in order [950: hardware guarantees]
void order_register_loads();   // later loads wait for all stores so far
void note_register_store(const void* address, uint64_t bytes);
void check_register_load(const void* address, uint64_t bytes);

// One bit for each byte of a register, as in a MaskReg. [MaskReg: function]: of a lane the lowest bit counts.
struct ByteBits {
    uint64_t words[4] = {};

    bool operator[](int byte) const { return words[byte / 64] >> (byte % 64) & 1; }
    void set(int byte, bool is_on) { words[byte / 64] = (words[byte / 64] & ~(uint64_t{1} << (byte % 64))) | uint64_t{is_on} << (byte % 64); }
    bool any() const { return words[0] | words[1] | words[2] | words[3]; }
};
}  // namespace model

namespace AscendC {
constexpr uint32_t VECTOR_REG_WIDTH = model::repeat_bytes;
constexpr uint32_t GetVecLen() { return VECTOR_REG_WIDTH; }

namespace MicroAPI {
enum class RegLayout { UNKNOWN = -1, ZERO, ONE, TWO, THREE };
enum class SatMode { UNKNOWN = -1, NO_SAT, SAT };
enum class MaskMergeMode { UNKNOWN = -1, MERGING, ZEROING };
enum class MaskPattern { ALL, VL1, VL2, VL3, VL4, VL8, VL16, VL32, VL64, VL128, ALLF };
enum class MemType { VEC_STORE, VEC_LOAD, SCALAR_STORE, SCALAR_LOAD, VEC_ALL, SCALAR_ALL };
enum class HighLowPart { LOWEST, HIGHEST };
enum class LoadDist { DIST_NORM, DIST_UNPACK_B16 };
enum class StoreDist { DIST_NORM, DIST_PACK_B32 };
enum class PostLiteral { POST_MODE_NORMAL, POST_MODE_UPDATE };
struct CastTrait {
    RegLayout layoutMode = RegLayout::UNKNOWN;
    SatMode satMode = SatMode::UNKNOWN;
    MaskMergeMode mrgMode = MaskMergeMode::UNKNOWN;
    RoundMode roundMode = RoundMode::UNKNOWN;
};
struct RegTrait { int num; };
constexpr RegTrait RegTraitNumOne{1}, RegTraitNumTwo{2};

// [RegTensor]. All of one register's views share its layout: kernels cast references to them.
template <class T, const RegTrait& trait = RegTraitNumOne>
struct alignas(32) RegTensor {
    using Element = T;
    static constexpr int lanes = model::lanes_of<T>;

    RegTensor() { std::memset(bytes, 0xa5, sizeof bytes), std::fill(unknown.words, unknown.words + 4, ~uint64_t{0}); }
    T get(int lane) const {
        T value;
        std::memcpy(&value, bytes + lane * sizeof(T), sizeof(T));
        return value;
    }
    bool knows(int lane) const {
        for (size_t byte = 0; byte < sizeof(T); ++byte) if (unknown[lane * static_cast<int>(sizeof(T)) + static_cast<int>(byte)]) return false;
        return true;
    }
    void set(int lane, T value, bool is_known = true) {
        std::memcpy(bytes + lane * sizeof(T), &value, sizeof(T));
        for (size_t byte = 0; byte < sizeof(T); ++byte) unknown.set(lane * static_cast<int>(sizeof(T)) + static_cast<int>(byte), !is_known);
    }
    void clear() { std::memset(bytes, 0, sizeof bytes), unknown = {}; }

    uint8_t bytes[model::repeat_bytes];
    model::ByteBits unknown;
};
// [RegTensor: b64]: the low halves of 64 elements, and the high ones.
template <class T>
struct RegTensor<T, RegTraitNumTwo> {
    RegTensor<uint32_t> reg[2];
};

struct MaskReg {
    model::ByteBits on, unknown;

    template <class T>
    bool has(int lane) const { return on[lane * static_cast<int>(sizeof(T))]; }
    template <class T>
    bool knows(int lane) const { return !unknown[lane * static_cast<int>(sizeof(T))]; }
    template <class T>
    void set(int lane, bool is_on, bool is_known = true) {
        on.set(lane * static_cast<int>(sizeof(T)), is_on);
        unknown.set(lane * static_cast<int>(sizeof(T)), !is_known);
    }
};

// [MaskReg: CreateMask, UpdateMask]: of two registers of b64 the lanes are those of b32.
template <class T, const RegTrait& trait>
using MaskLane = std::conditional_t<trait.num == 2, uint32_t, T>;
template <class T, const RegTrait& trait = RegTraitNumOne>
MaskReg UpdateMask(uint32_t& left) {
    using Lane = MaskLane<T, trait>;
    const uint32_t lanes = std::min(left, model::lanes_of<Lane>);
    MaskReg mask;
    for (uint32_t lane = 0; lane < lanes; ++lane) mask.set<Lane>(static_cast<int>(lane), true);
    left -= lanes;
    return mask;
}
template <class T, MaskPattern pattern = MaskPattern::ALL, const RegTrait& trait = RegTraitNumOne>
MaskReg CreateMask() {
    uint32_t lanes = pattern == MaskPattern::ALL ? 256 : pattern == MaskPattern::ALLF ? 0 : pattern == MaskPattern::VL3 ? 3
                   : pattern == MaskPattern::VL4 ? 4 : pattern <= MaskPattern::VL2 ? static_cast<uint32_t>(pattern)
                   : 8u << (static_cast<int>(pattern) - static_cast<int>(MaskPattern::VL8));
    return UpdateMask<T, trait>(lanes);
}

// to[lane] = f(lane) where the mask has it, 0 elsewhere: MaskMergeMode::ZEROING. [MaskMergeMode]
template <class To, class Function, class... From>
void each_lane(To& to, const MaskReg& mask, Function f, const From&... from) {
    using T = typename To::Element;
    To result;
    result.clear();
    const bool all_known = !(from.unknown.any() || ...) && !mask.unknown.any();
    for (int lane = 0; lane < To::lanes; ++lane) {
        const bool is_known = all_known || (mask.knows<T>(lane) && (!mask.has<T>(lane) || (from.knows(lane) && ...)));
        if (mask.has<T>(lane) || !is_known) result.set(lane, static_cast<T>(f(from.get(lane)...)), is_known);
    }
    to = result;
}

#define MODEL_BINARY(Name, operation)                                                                 \
    template <class T>                                                                                \
    void Name(RegTensor<T>& to, const RegTensor<T>& a, const RegTensor<T>& b, const MaskReg& mask) {  \
        each_lane(to, mask, [](T x, T y) -> T { return operation; }, a, b);                           \
    }
MODEL_BINARY(Add, model::add(x, y))
MODEL_BINARY(Sub, model::subtract(x, y))
MODEL_BINARY(Mul, model::multiply(x, y))
MODEL_BINARY(Div, model::divide(x, y))
MODEL_BINARY(Max, model::larger(x, y))
MODEL_BINARY(Min, model::smaller(x, y))
MODEL_BINARY(And, static_cast<T>(x & y))
MODEL_BINARY(Or, static_cast<T>(x | y))
#undef MODEL_BINARY
#define MODEL_SCALAR(Name, operation)                                                      \
    template <class T, class Scalar>                                                       \
    void Name(RegTensor<T>& to, const RegTensor<T>& from, Scalar s, const MaskReg& mask) { \
        each_lane(to, mask, [=](T x) -> T { return operation; }, from);                    \
    }
MODEL_SCALAR(Adds, model::add(x, static_cast<T>(s)))
MODEL_SCALAR(Muls, model::multiply(x, static_cast<T>(s)))
MODEL_SCALAR(Maxs, model::larger(x, static_cast<T>(s)))
MODEL_SCALAR(Mins, model::smaller(x, static_cast<T>(s)))
MODEL_SCALAR(ShiftRights, static_cast<T>(x >> s))
MODEL_SCALAR(ShiftLefts, static_cast<T>(x << s))
#undef MODEL_SCALAR

// [Mull]: low and high half of the product.
inline void Mull(RegTensor<uint32_t>& low, RegTensor<uint32_t>& high, const RegTensor<uint32_t>& a, const RegTensor<uint32_t>& b, const MaskReg& mask) {
    const RegTensor<uint32_t> x = a, y = b;
    each_lane(low, mask, [](uint32_t p, uint32_t q) { return p * q; }, x, y);
    each_lane(high, mask, [](uint32_t p, uint32_t q) { return static_cast<uint32_t>(uint64_t{p} * q >> 32); }, x, y);
}
template <class T>
void Duplicate(RegTensor<T>& to, model::Same<T> value, const MaskReg& mask = CreateMask<T>()) { each_lane(to, mask, [=] { return value; }); }
template <class T>
void Arange(RegTensor<T>& to, model::Same<T> first) {
    each_lane(to, CreateMask<T>(), [next = first]() mutable { return std::exchange(next, model::add(next, T(1))); });
}
// [Select]
template <class T>
void Select(RegTensor<T>& to, const RegTensor<T>& a, const RegTensor<T>& b, const MaskReg& mask) {
    RegTensor<T> result;
    for (int lane = 0; lane < to.lanes; ++lane) {
        const RegTensor<T>& chosen = mask.has<T>(lane) ? a : b;
        result.set(lane, chosen.get(lane), chosen.knows(lane) && mask.knows<T>(lane));
    }
    to = result;
}
// [Compare]
template <class T, CMPMODE mode = CMPMODE::EQ>
void Compare(MaskReg& to, const RegTensor<T>& a, const RegTensor<T>& b, const MaskReg& mask) {
    MaskReg result;
    for (int lane = 0; lane < a.lanes; ++lane) {
        const bool is_off = mask.knows<T>(lane) && !mask.has<T>(lane);
        result.set<T>(lane, !is_off && model::compare(mode, a.get(lane), b.get(lane)), is_off || (mask.knows<T>(lane) && a.knows(lane) && b.knows(lane)));
    }
    to = result;
}
inline void MaskAnd(MaskReg& to, const MaskReg& a, const MaskReg& b, const MaskReg& mask) {
    for (int i = 0; i < 4; ++i) {
        const uint64_t on = a.on.words[i] & b.on.words[i] & mask.on.words[i];
        const uint64_t off = (~a.on.words[i] & ~a.unknown.words[i]) | (~b.on.words[i] & ~b.unknown.words[i]) | (~mask.on.words[i] & ~mask.unknown.words[i]);
        to.unknown.words[i] = (a.unknown.words[i] | b.unknown.words[i] | mask.unknown.words[i]) & ~off;
        to.on.words[i] = on;
    }
}
inline void And(MaskReg& to, const MaskReg& a, const MaskReg& b, const MaskReg& mask) { MaskAnd(to, a, b, mask); }

// [Pack], [UnPack]: the low halves of wide elements side by side, and back.
template <class To, class From>
void Pack(RegTensor<To>& to, const RegTensor<From>& from) {
    RegTensor<To> result;
    result.clear();
    for (int lane = 0; lane < from.lanes; ++lane) result.set(lane, static_cast<To>(from.get(lane)), from.knows(lane));
    to = result;
}
template <class To, class From>
void UnPack(RegTensor<To>& to, const RegTensor<From>& from) {
    RegTensor<To> result;
    for (int lane = 0; lane < to.lanes; ++lane) result.set(lane, static_cast<To>(from.get(lane)), from.knows(lane));
    to = result;
}
// [Cast: RegLayout]: the narrow side uses every second (fourth) element; the mask is that of the source.
template <class To, class From, const CastTrait& trait>
void Cast(RegTensor<To>& to, const RegTensor<From>& from, const MaskReg& mask) {
    constexpr int wide = std::max(sizeof(To), sizeof(From)), to_step = wide / sizeof(To), from_step = wide / sizeof(From);
    constexpr int offset = trait.layoutMode == RegLayout::UNKNOWN ? 0 : static_cast<int>(trait.layoutMode);
    RegTensor<To> result;
    result.clear();
    for (int i = 0; i < static_cast<int>(model::repeat_bytes) / wide; ++i) {
        const int source = i * from_step + (from_step > 1 ? offset : 0), lane = i * to_step + (to_step > 1 ? offset : 0);
        if (mask.has<From>(source)) result.set(lane, model::convert<To>(from.get(source), trait.roundMode), from.knows(source) && mask.knows<From>(source));
    }
    to = result;
}
}  // namespace MicroAPI
}  // namespace AscendC

namespace model {
// One lane from or to UB, in the order that the vector function gives.
template <class T>
T load_lane(const T* from, bool& is_known) {
    T value{};
    if (!reach(from, sizeof(T), {}, false)) return is_known = false, value;
    check_register_load(from, sizeof(T));
    is_known = load(from, sizeof(T));
    std::memcpy(&value, from, sizeof(T));
    return value;
}
template <class T>
void store_lane(T* to, T value, bool is_known) {
    if (!reach(to, sizeof(T), {}, true)) return;
    store(to, sizeof(T));
    note_register_store(to, sizeof(T));
    std::memcpy(to, &value, sizeof(T));
    if (!is_known) forget(to, sizeof(T));
}
template <class T, class Index>
T* lane_address(T* base, Index index) { return reinterpret_cast<T*>(reinterpret_cast<uint64_t>(base) + static_cast<uint64_t>(index) * sizeof(T)); }
}  // namespace model

namespace AscendC {
namespace MicroAPI {

// [LocalMemBar]
template <MemType source, MemType destination>
void LocalMemBar() { model::order_register_loads(); }

// [LoadAlign], [StoreAlign], formerly DataCopy
template <class T, LoadDist dist = LoadDist::DIST_NORM>
void LoadAlign(RegTensor<T>& to, const T* from, model::Site site = {}) {
    model::begin(model::Pipe::vector, "LoadAlign", site);
    model::require_alignment(from);
    constexpr int step = dist == LoadDist::DIST_NORM ? 1 : 2;
    to.clear();
    for (int lane = 0; lane < to.lanes; lane += step) {
        bool is_known;
        const T value = model::load_lane(from + lane / step, is_known);
        to.set(lane, value, is_known);
    }
}
template <class T>
void LoadAlign(RegTensor<T, RegTraitNumTwo>& to, const T* from, model::Site site = {}) {
    model::begin(model::Pipe::vector, "LoadAlign", site);
    model::require_alignment(from);
    for (int lane = 0; lane < to.reg[0].lanes; ++lane) {
        bool is_known;
        const auto value = static_cast<uint64_t>(model::load_lane(from + lane, is_known));
        for (int part = 0; part < 2; ++part) to.reg[part].set(lane, static_cast<uint32_t>(value >> 32 * part), is_known);
    }
}
template <class T, PostLiteral post, LoadDist dist = LoadDist::DIST_NORM>
void LoadAlign(RegTensor<T>& to, T*& from, int32_t stride, model::Site site = {}) { LoadAlign<T, dist>(to, from, site), from += stride; }
template <class T, StoreDist dist = StoreDist::DIST_NORM>
void StoreAlign(T* to, const RegTensor<T>& from, const MaskReg& mask, model::Site site = {}) {
    model::begin(model::Pipe::vector, "StoreAlign", site);
    model::require_alignment(to);
    for (int lane = 0; lane < from.lanes; ++lane) {
        model::require_defined(mask.knows<T>(lane), "which lanes are stored hangs on what was never written", to);
        if (!mask.has<T>(lane)) continue;
        if constexpr (dist == StoreDist::DIST_NORM) model::store_lane(to + lane, from.get(lane), from.knows(lane));
        else model::store_lane(reinterpret_cast<uint16_t*>(to) + lane, static_cast<uint16_t>(model::bits_of<uint32_t>(from.get(lane))), from.knows(lane));
    }
}
template <class T, PostLiteral post, StoreDist dist = StoreDist::DIST_NORM>
void StoreAlign(T*& to, const RegTensor<T>& from, int32_t stride, const MaskReg& mask, model::Site site = {}) { StoreAlign<T, dist>(to, from, mask, site), to += stride; }

// [Gather(UB to register)]
template <class T, class Index, const RegTrait& trait, class Set>
void gather_lanes(const T* base, const RegTensor<Index>& index, const MaskReg& mask, int lanes, Set set) {
    using Lane = MaskLane<T, trait>;
    for (int lane = 0; lane < lanes; ++lane) {
        if (!mask.has<Lane>(lane)) continue;
        model::require_defined(index.knows(lane) && mask.knows<Lane>(lane), "an address is computed from what was never written", base);
        bool is_known;
        const T value = model::load_lane(model::lane_address(base, index.get(lane)), is_known);
        set(lane, value, is_known);
    }
}
template <class T, class Index>
void Gather(RegTensor<T>& to, const T* base, const RegTensor<Index>& index, const MaskReg& mask, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Gather", site);
    RegTensor<T> result;
    result.clear();
    gather_lanes<T, Index, RegTraitNumOne>(base, index, mask, std::min(result.lanes, index.lanes), [&](int lane, T value, bool known) { result.set(lane, value, known); });
    to = result;
}
template <class T, class Index>
void Gather(RegTensor<T, RegTraitNumTwo>& to, const T* base, const RegTensor<Index>& index, const MaskReg& mask, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Gather", site);
    RegTensor<uint32_t> result[2];
    for (RegTensor<uint32_t>& part : result) part.clear();
    gather_lanes<T, Index, RegTraitNumTwo>(base, index, mask, std::min(64, index.lanes), [&](int lane, T value, bool known) {
        for (int part = 0; part < 2; ++part) result[part].set(lane, static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32 * part), known);
    });
    for (int part = 0; part < 2; ++part) to.reg[part] = result[part];
}
// [Scatter: index]: of equal indices one is kept, and none knows which; here the last lane.
template <class T, class Index>
void Scatter(T* base, const RegTensor<T>& from, const RegTensor<Index>& index, const MaskReg& mask, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Scatter", site);
    Index seen[model::lanes_of<T>];
    int count = 0;
    for (int lane = 0; lane < std::min(from.lanes, index.lanes); ++lane) {
        if (!mask.has<T>(lane)) continue;
        model::require_defined(index.knows(lane) && mask.knows<T>(lane), "an address is computed from what was never written", base);
        T* const to = model::lane_address(base, index.get(lane));
        if (std::find(seen, seen + count, index.get(lane)) != seen + count) model::report("racecheck", "one Scatter has an index twice: one of the values is lost", to);
        seen[count++] = index.get(lane);
        model::store_lane(to, from.get(lane), from.knows(lane));
    }
}

// The names until CANN 8.5.
template <class Register, class T>
void DataCopy(Register& to, const T* from, model::Site site = {}) { LoadAlign(to, from, site); }
template <class T>
void DataCopy(T* to, const RegTensor<T>& from, const MaskReg& mask, model::Site site = {}) { StoreAlign(to, from, mask, site); }
template <class Register, class T, class Index>
void DataCopyGather(Register& to, const T* base, const RegTensor<Index>& index, const MaskReg& mask, model::Site site = {}) { Gather(to, base, index, mask, site); }
template <class T, class Index>
void DataCopyScatter(T* base, const RegTensor<T>& from, const RegTensor<Index>& index, const MaskReg& mask, model::Site site = {}) { Scatter(base, from, index, mask, site); }
}  // namespace MicroAPI
namespace Reg = MicroAPI;
}  // namespace AscendC
