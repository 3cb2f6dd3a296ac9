// The vector functions of 950, which work on registers (AscendC::Reg, formerly MicroAPI): registers and masks by lanes, loads
// and stores. Within one vector function only a LocalMemBar makes a load wait for a store, so it closes a window of pipe V.
#pragma once
#include "vector.h"

// What functions were called until CANN 9.1; below are those whose former names are those of several.
#define CompareScalar Compares
#define DataCopyGather Gather
#define DataCopyScatter Scatter
#define DataCopyUnAlignPost StoreUnAlignPost
#define DataCopyUnAlignPre LoadUnAlignPre
#define MaskAnd And
#define MaskNot Not
#define MaskOr Or
#define MaskPack Pack
#define MaskUnPack UnPack
#define MaskXor Xor

#define __VEC_SCOPE__ if (const ::model::VectorFunction function{}; true)

namespace model {

bool& in_vector_function();

// Vector functions follow each other in order. [intra-core synchronisation: key features]
struct VectorFunction {
    VectorFunction() { release(Pipe::vector), in_vector_function() = true; }
    ~VectorFunction() { release(Pipe::vector), in_vector_function() = false; }
};
}  // namespace model

namespace AscendC {
constexpr uint32_t VECTOR_REG_WIDTH = model::repeat_bytes;
constexpr uint32_t GetVecLen() { return VECTOR_REG_WIDTH; }
// [SetCtrlSpr: tables 3 and 6]: what float16 is beyond its range. The model computes by an assumption instead, and reports a
// kernel that does not set the bit back. It is the one bit of CTRL that TPipe keeps of the kernel before (asc-devkit,
// AscendCUtils::InitSocStateImpl); the atomic addition and the mode of masks begin anew.
template <int8_t first, int8_t last> int64_t GetCtrlSpr() { return model::copy_state().keeps_infinities; }
template <int8_t first, int8_t last> void SetCtrlSpr(int64_t value, model::Site site = {}) {
    static_assert(first == 48 && last == 48, "only CTRL[48]");
    model::begin(model::Pipe::scalar, "SetCtrlSpr", site);
    model::copy_state().keeps_infinities = value, model::copy_state().ctrl_call = model::current_operation();
}

namespace MicroAPI {
enum class RegLayout { UNKNOWN = -1, ZERO, ONE, TWO, THREE };
enum class SatMode { UNKNOWN = -1, NO_SAT, SAT };
enum class MaskMergeMode { UNKNOWN = -1, MERGING, ZEROING };
enum class MaskPattern { ALL, VL1, VL2, VL3, VL4, VL8, VL16, VL32, VL64, VL128, ALLF };
enum class MemType { VEC_STORE, VEC_LOAD, SCALAR_STORE, SCALAR_LOAD, VEC_ALL, SCALAR_ALL };
enum class HighLowPart { LOWEST, HIGHEST };
enum class LoadDist { DIST_NORM, DIST_UNPACK_B16, DIST_BRC_B16, DIST_BRC_B32 };
enum class StoreDist { DIST_NORM, DIST_PACK_B32, DIST_PACK4_B32, DIST_FIRST_ELEMENT_B16, DIST_FIRST_ELEMENT_B32 };
enum class PostLiteral { POST_MODE_NORMAL, POST_MODE_UPDATE };
enum class ReduceType { SUM, MAX, MIN };
struct CastTrait {
    RegLayout layoutMode = RegLayout::UNKNOWN;
    SatMode satMode = SatMode::UNKNOWN;
    MaskMergeMode mrgMode = MaskMergeMode::UNKNOWN;
    RoundMode roundMode = RoundMode::UNKNOWN;
};
struct RegTrait { int num; };
constexpr RegTrait RegTraitNumOne{1}, RegTraitNumTwo{2};

// [RegTensor]. Kernels cast references to them: all types of registers share a layout.
template <class T, const RegTrait& trait = RegTraitNumOne> struct RegTensor : model::Lanes<T> {
    static constexpr uint32_t step = sizeof(T);  // bits of a mask for a lane
    RegTensor() { std::fill(this->unknown.words, this->unknown.words + 4, ~uint64_t{0}); }
};
// [RegTensor: b64]: the low halves of elements, and the high ones; masks are those of b32.
template <class T> struct RegTensor<T, RegTraitNumTwo> {
    static constexpr uint32_t count = model::Lanes<uint32_t>::count, step = sizeof(uint32_t);
    RegTensor<uint32_t> reg[2];

    T get(uint32_t lane) const { return static_cast<T>(reg[0].get(lane) | uint64_t{reg[1].get(lane)} << 32); }
    bool knows(uint32_t lane) const { return reg[0].knows(lane) && reg[1].knows(lane); }
    void set(uint32_t lane, T element, bool is_known) {
        reg[0].set(lane, static_cast<uint32_t>(element), is_known);
        reg[1].set(lane, static_cast<uint32_t>(static_cast<uint64_t>(element) >> 32), is_known);
    }
};
using MaskReg = model::Choice;  // [MaskReg: function]: a bit for each byte of a register; of a lane the lowest bit counts

// [MaskReg: UpdateMask, CreateMask]
template <class T, const RegTrait& trait = RegTraitNumOne> MaskReg UpdateMask(uint32_t& left) {
    using Register = RegTensor<T, trait>;
    MaskReg mask;
    const uint32_t lanes = std::min(left, Register::count);
    for (uint32_t lane = 0; lane < lanes; ++lane) mask.on.set(lane * Register::step, 1, true);
    left -= lanes;
    return mask;
}
template <class T, MaskPattern pattern = MaskPattern::ALL, const RegTrait& trait = RegTraitNumOne> MaskReg CreateMask() {
    uint32_t lanes[] = {256, 1, 2, 3, 4, 8, 16, 32, 64, 128, 0};
    return UpdateMask<T, trait>(lanes[static_cast<int>(pattern)]);
}

// to[lane] = f(from[lane]...) where the mask has the lane, 0 elsewhere. [MaskMergeMode: ZEROING]
template <class Register, class Function, class... From>
void map(Register& to, const MaskReg& mask, Function f, const From&... from) {
    Register result;
    for (uint32_t lane = 0; lane < to.count; ++lane) {
        const bool is_on = mask.on[lane * to.step], is_known = !is_on || (from.knows(lane) && ... && true);
        result.set(lane, is_on ? f(from.get(lane)...) : decltype(f(from.get(lane)...))(0), is_known && !mask.unknown[lane * to.step]);
    }
    to = result;
}

#define MODEL_BINARY(Name, operation)                                                                            \
    template <class T, const RegTrait& trait> void Name(RegTensor<T, trait>& to, const RegTensor<T, trait>& a,   \
                                                        const RegTensor<T, trait>& b, const MaskReg& mask) {     \
        map(to, mask, [](T x, T y) -> T { return operation; }, a, b);                                            \
    }
MODEL_BINARY(Add, model::add(x, y))
MODEL_BINARY(Sub, model::subtract(x, y))
MODEL_BINARY(Mul, model::multiply(x, y))
MODEL_BINARY(Div, model::flush(model::divide(model::flush(x), model::flush(y))))
MODEL_BINARY(Max, model::extreme<true>(x, y))
MODEL_BINARY(Min, model::extreme<false>(x, y))
MODEL_BINARY(And, static_cast<T>(x & y))
MODEL_BINARY(Or, static_cast<T>(x | y))
#undef MODEL_BINARY
#define MODEL_SCALAR(Name, operation)                                                                       \
    template <class T, const RegTrait& trait, class Scalar> void Name(                                      \
        RegTensor<T, trait>& to, const RegTensor<T, trait>& from, Scalar s, const MaskReg& mask) {          \
        map(to, mask, [=](T x) -> T { return operation; }, from);                                           \
    }
MODEL_SCALAR(Adds, model::add(x, static_cast<T>(s)))
MODEL_SCALAR(Muls, model::multiply(x, static_cast<T>(s)))
MODEL_SCALAR(Maxs, model::extreme<true>(x, static_cast<T>(s)))
MODEL_SCALAR(Mins, model::extreme<false>(x, static_cast<T>(s)))
MODEL_SCALAR(ShiftRights, static_cast<T>(x >> s))
MODEL_SCALAR(ShiftLefts, static_cast<T>(x << s))
#undef MODEL_SCALAR

// [Mull]: low and high half of the product.
using RegU32 = RegTensor<uint32_t>;
inline void Mull(RegU32& low, RegU32& high, RegU32 a, RegU32 b, const MaskReg& mask) {
    map(low, mask, [](uint32_t x, uint32_t y) { return x * y; }, a, b);
    map(high, mask, [](uint32_t x, uint32_t y) { return static_cast<uint32_t>(uint64_t{x} * y >> 32); }, a, b);
}
template <class T, const RegTrait& trait>
void Duplicate(RegTensor<T, trait>& to, model::Same<T> value, const MaskReg& mask = CreateMask<T, MaskPattern::ALL, trait>()) {
    map(to, mask, [=] { return value; });
}
// The lowest element of another register in all lanes.
template <class T, const RegTrait& trait>
void Duplicate(RegTensor<T, trait>& to, const RegTensor<T, trait>& from, const MaskReg& mask) {
    RegTensor<T, trait> lowest;
    for (uint32_t lane = 0; lane < to.count; ++lane) lowest.set(lane, from.get(0), from.knows(0));
    map(to, mask, [](T x) { return x; }, lowest);
}
template <class T, const RegTrait& trait> void Arange(RegTensor<T, trait>& to, model::Same<T> first) {
    const auto next = [=]() mutable { return std::exchange(first, model::add(first, T(1))); };
    map(to, CreateMask<T, MaskPattern::ALL, trait>(), next);
}
// [Compare], [Select]
template <class T, CMPMODE mode = CMPMODE::EQ, const RegTrait& trait>
void Compare(MaskReg& to, const RegTensor<T, trait>& a, const RegTensor<T, trait>& b, const MaskReg& mask) {
    to = model::compare<RegTensor<T, trait>::step>(mask, mode, a, b);
}
template <class Register> void Select(Register& to, const Register& a, const Register& b, const MaskReg& mask) {
    to = model::select<Register::step>(mask, a, b);
}
// [Compares]
template <class T, CMPMODE mode = CMPMODE::EQ, const RegTrait& trait>
void Compares(MaskReg& to, const RegTensor<T, trait>& from, model::Same<T> scalar, const MaskReg& mask) {
    RegTensor<T, trait> all;
    Duplicate(all, scalar);
    Compare<T, mode>(to, from, all, mask);
}
// [Move]: lanes that the mask has not stay as they are.
template <class Register> void Move(Register& to, const Register& from, const MaskReg& mask) { Select(to, from, to, mask); }
template <class Register> void Move(Register& to, const Register& from) { to = from; }
template <class Register, class... Mask> void Copy(Register& to, const Register& from, const Mask&... mask) { Move(to, from, mask...); }

// [And], [Or], [Xor], [Not], [Move] of masks. A bit is undefined if it hangs on undefined ones: not 0 and whatever.
template <class Function> void map(MaskReg& to, const MaskReg& mask, Function f, const MaskReg& a, const MaskReg& b) {
    for (int i = 0; i < 4; ++i) {
        uint64_t some = 0, all = ~uint64_t{0};
        for (uint64_t fill = 0; fill < 8; ++fill) {
            const auto bits = [=](const MaskReg& m, int shift) {
                return (m.on.words[i] & ~m.unknown.words[i]) | (m.unknown.words[i] & -(fill >> shift & 1));
            };
            const uint64_t result = f(bits(a, 0), bits(b, 1)) & bits(mask, 2);
            some |= result, all &= result;
        }
        to.on.words[i] = all, to.unknown.words[i] = some & ~all;
    }
}
#define MODEL_MASKS(Name, operation)                                                                    \
    inline void Name(MaskReg& to, const MaskReg& a, const MaskReg& b, const MaskReg& mask) {            \
        map(to, mask, [](uint64_t x, uint64_t y) { return operation; }, a, b);                          \
    }
MODEL_MASKS(And, x & y)
MODEL_MASKS(Or, x | y)
MODEL_MASKS(Xor, x ^ y)
#undef MODEL_MASKS
inline void Not(MaskReg& to, const MaskReg& from, const MaskReg& mask) { Xor(to, from, mask, mask); }
inline void Move(MaskReg& to, const MaskReg& from, const MaskReg& mask) { And(to, from, mask, mask); }

// [Pack], [UnPack]: the low halves of wide elements side by side with zeros around, and back, with their sign.
template <class To, class From, HighLowPart part = HighLowPart::LOWEST>
void Pack(RegTensor<To>& to, const RegTensor<From>& from) {
    constexpr uint32_t count = std::min(from.count, to.count), offset = part == HighLowPart::HIGHEST ? count : 0;
    constexpr bool is_narrower = sizeof(To) < sizeof(From);
    model::Lanes<To> result;
    for (uint32_t lane = 0; lane < count; ++lane) {
        const uint32_t source = lane + (is_narrower ? 0 : offset);
        result.set(lane + (is_narrower ? offset : 0), static_cast<To>(from.get(source)), from.knows(source));
    }
    static_cast<model::Lanes<To>&>(to) = result;
}
template <class To, class From, HighLowPart part = HighLowPart::LOWEST>
void UnPack(RegTensor<To>& to, const RegTensor<From>& from) { Pack<To, From, part>(to, from); }
// Of masks: every second bit to the half, side by side, and back.
template <HighLowPart part, bool packs> void spread(MaskReg& to, const MaskReg& from) {
    MaskReg result;
    for (uint32_t i = 0; i < 128; ++i) {
        const uint32_t half = i + (part == HighLowPart::HIGHEST ? 128 : 0), bit = packs ? half : i * 2, source = packs ? i * 2 : half;
        result.on.set(bit, 1, from.on[source]), result.unknown.set(bit, 1, from.unknown[source]);
    }
    to = result;
}
template <HighLowPart part = HighLowPart::LOWEST> void Pack(MaskReg& to, const MaskReg& from) { spread<part, true>(to, from); }
template <HighLowPart part = HighLowPart::LOWEST> void UnPack(MaskReg& to, const MaskReg& from) { spread<part, false>(to, from); }

// [Reduce: mask]: the greatest or least, and in the second lane the first place where it is, in the bits of the type; of no
// lanes the type's least or greatest value.
template <ReduceType type, class T> void Reduce(RegTensor<T>& to, const RegTensor<T>& from, const MaskReg& mask) {
    static_assert(type != ReduceType::SUM, "sums are not modelled");
    constexpr bool is_maximum = type == ReduceType::MAX;
    using Limits = std::numeric_limits<std::conditional_t<model::is_float<T>, float, T>>;
    T best = model::is_float<T> ? T(Limits::infinity() * (is_maximum ? -1 : 1)) : T(is_maximum ? Limits::lowest() : Limits::max());
    model::Bits_of<T> place = 0;
    bool is_known = !mask.unknown.any(), is_first = true;
    for (uint32_t lane = 0; lane < from.count; ++lane) {
        if (!mask.on[lane * from.step]) continue;
        is_known &= from.knows(lane);
        if (is_first || model::is_better<is_maximum>(from.get(lane), best)) place = lane;
        best = model::extreme<is_maximum>(best, from.get(lane)), is_first = false;
    }
    model::Lanes<T> result;
    result.set(0, best, is_known), result.set(1, model::bits_of<T>(place), is_known);
    static_cast<model::Lanes<T>&>(to) = result;
}
template <class T> void ReduceMax(RegTensor<T>& to, const RegTensor<T>& from, const MaskReg& mask) { Reduce<ReduceType::MAX>(to, from, mask); }
template <class T> void ReduceMin(RegTensor<T>& to, const RegTensor<T>& from, const MaskReg& mask) { Reduce<ReduceType::MIN>(to, from, mask); }

// [Cast: RegLayout]: the narrow side uses every second (fourth) element; the mask is that of the source.
template <class To, class From, const CastTrait& trait>
void Cast(RegTensor<To>& to, const RegTensor<From>& from, const MaskReg& mask) {
    constexpr uint32_t layout = trait.layoutMode == RegLayout::UNKNOWN ? 0 : static_cast<uint32_t>(trait.layoutMode);
    constexpr uint32_t wide = std::max(sizeof(To), sizeof(From)), to_step = wide / sizeof(To), from_step = wide / sizeof(From);
    model::Lanes<To> result;
    for (uint32_t i = 0; i < model::repeat_bytes / wide; ++i) {
        const uint32_t source = i * from_step + (from_step > 1 ? layout : 0), lane = i * to_step + (to_step > 1 ? layout : 0);
        if (!mask.on[source * sizeof(From)]) continue;
        const bool is_known = from.knows(source) && !mask.unknown[source * sizeof(From)];
        result.set(lane, model::convert<To>(from.get(source), trait.roundMode), is_known);
    }
    static_cast<model::Lanes<To>&>(to) = result;
}

// [LocalMemBar]
template <MemType source, MemType destination> void LocalMemBar() { model::release(model::Pipe::vector); }

// [AddrReg]: an offset in elements.
struct AddrReg { uint64_t offset; };
template <class T> AddrReg CreateAddrReg(uint16_t index, uint32_t stride) { return {uint64_t{index} * stride}; }

// [LoadAlign], [StoreAlign]; DataCopy until CANN 9.1
template <class T, LoadDist dist = LoadDist::DIST_NORM, const RegTrait& trait>
void LoadAlign(RegTensor<T, trait>& to, const T* from, AddrReg address = {0}, model::Site site = {}) {
    model::begin(model::Pipe::vector, "LoadAlign", site);
    from += address.offset;
    constexpr bool is_one = dist == LoadDist::DIST_BRC_B16 || dist == LoadDist::DIST_BRC_B32;
    model::require_alignment(from, is_one ? sizeof(T) : model::block_bytes);
    if (is_one) {
        model::Lanes<T> one;
        model::load(one, 0, from, sizeof(T), {});
        for (uint32_t lane = 0; lane < to.count; ++lane) to.set(lane, one.get(0), one.knows(0));
        return;
    }
    constexpr uint32_t step = dist == LoadDist::DIST_UNPACK_B16 ? 2 : 1, part = std::min(to.count / step, model::Lanes<T>::count);
    for (uint32_t lane = 0; lane < to.count; ++lane) to.set(lane, T(0), true);
    for (uint32_t first = 0; first < to.count / step; first += part) {  // b64 fill two registers
        model::Lanes<T> loaded;
        model::load(loaded, 0, from + first, part * sizeof(T), {});
        for (uint32_t i = 0; i < part; ++i) to.set((first + i) * step, loaded.get(i), loaded.knows(i));
    }
}
template <class T, StoreDist dist = StoreDist::DIST_NORM>
void StoreAlign(T* to, const RegTensor<T>& from, const MaskReg& mask, model::Site site = {}) {
    model::begin(model::Pipe::vector, "StoreAlign", site);
    constexpr bool is_one = dist == StoreDist::DIST_FIRST_ELEMENT_B16 || dist == StoreDist::DIST_FIRST_ELEMENT_B32;
    model::require_alignment(to, is_one ? sizeof(T) : model::block_bytes);
    if (is_one) return model::store(to, from, 0, sizeof(T), {});  // whatever the mask is
    model::require_defined(!mask.unknown.any(), "which lanes are stored hangs on what was never written", to);
    constexpr uint32_t step = dist == StoreDist::DIST_NORM ? 1 : 4 / sizeof(T);
    model::Lanes<T> packed;
    model::Bits lanes;
    for (uint32_t lane = 0; lane < from.count; lane += step) {
        packed.set(lane / step, from.get(lane), from.knows(lane));
        lanes.set(lane / step, 1, mask.on[lane * sizeof(T)]);
    }
    model::View<T>{LocalTensor<T>(to, {})}.store(0, lanes, packed);
}
template <class T, StoreDist dist = StoreDist::DIST_NORM>
void StoreAlign(T* to, const RegTensor<T>& from, AddrReg address, const MaskReg& mask, model::Site site = {}) {
    StoreAlign<T, dist>(to + address.offset, from, mask, site);
}
// [PostLiteral]: the address goes on by so many elements.
template <class T, PostLiteral, LoadDist dist = LoadDist::DIST_NORM, const RegTrait& trait>
void LoadAlign(RegTensor<T, trait>& to, T*& from, int32_t step, model::Site site = {}) {
    LoadAlign<T, dist>(to, std::exchange(from, from + step), {0}, site);
}
template <class T, PostLiteral, StoreDist dist = StoreDist::DIST_NORM>
void StoreAlign(T*& to, const RegTensor<T>& from, int32_t step, const MaskReg& mask, model::Site site = {}) {
    StoreAlign<T, dist>(std::exchange(to, to + step), from, mask, site);
}

// [LoadUnAlign]: what the buffer holds is memory's own. Until CANN 9.1 there was one type of buffer.
struct UnalignRegForLoad {};
template <class T> void LoadUnAlignPre(UnalignRegForLoad&, const T*) {}
template <class T, class Address>
void LoadUnAlign(RegTensor<T>& to, UnalignRegForLoad&, Address& from, uint32_t step, model::Site site = {}) {
    model::begin(model::Pipe::vector, "LoadUnAlign", site);
    model::Lanes<T> loaded;
    model::load(loaded, 0, std::exchange(from, from + step), model::repeat_bytes, {});
    static_cast<model::Lanes<T>&>(to) = loaded;
}
// [StoreUnAlign]: the last block, where it is not full, waits for the next call or for StoreUnAlignPost.
struct UnalignRegForStore : UnalignRegForLoad {
    model::Bytes lanes;
    uint8_t* to = nullptr;
    uint32_t at = 0, bytes = 0;
    void store() { model::store(to, lanes, at, std::exchange(bytes, 0), {}); }
};
using UnalignReg = UnalignRegForStore;
template <class T>
void StoreUnAlign(T*& to, const RegTensor<T>& from, UnalignRegForStore& buffer, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "StoreUnAlign", site);
    if (buffer.bytes) buffer.store();
    if (!count) model::forget_load();
    auto* const first = reinterpret_cast<uint8_t*>(std::exchange(to, to + count));
    const uint32_t bytes = std::min<uint32_t>(count, from.count) * sizeof(T);
    const auto rest = std::min<uint32_t>(bytes, (reinterpret_cast<uint64_t>(first) + bytes) % model::block_bytes);
    if (bytes > rest) model::store(first, from, 0, bytes - rest, {});
    buffer = {{}, from, first + bytes - rest, bytes - rest, rest};
}
template <class T> void StoreUnAlignPost(T*& to, UnalignRegForStore& buffer, int32_t step, model::Site site = {}) {
    model::begin(model::Pipe::vector, "StoreUnAlignPost", site);
    if (buffer.bytes) buffer.store();
    to += step;
}

// [Gather], [Scatter]. Of equal indices of a Scatter one value is kept, and none knows which; here the last lane's.
constexpr const char* address_is_undefined = "an address is computed from what was never written";
template <class T, const RegTrait& trait, class Index> void Gather(
    RegTensor<T, trait>& to, const T* base, const RegTensor<Index>& index, const MaskReg& mask, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Gather", site);
    RegTensor<T, trait> result;
    for (uint32_t lane = 0; lane < std::min(result.count, index.count); ++lane) {
        const uint32_t bit = lane * result.step;
        model::Lanes<T> element;
        if (mask.on[bit]) {
            model::require_defined(index.knows(lane) && !mask.unknown[bit], address_is_undefined, base);
            model::load(element, 0, model::advance(base, static_cast<uint64_t>(index.get(lane))), sizeof(T), {});
        }
        result.set(lane, element.get(0), element.knows(0));
    }
    to = result;
}
template <class T, class Index> void Scatter(T* base, const RegTensor<T>& from, const RegTensor<Index>& index,
                                             const MaskReg& mask, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Scatter", site);
    T* stored[RegTensor<T>::count];
    T** end = stored;
    for (uint32_t lane = 0; lane < std::min(from.count, index.count); ++lane) {
        const uint32_t bit = lane * from.step;
        if (!mask.on[bit]) continue;
        model::require_defined(index.knows(lane) && !mask.unknown[bit], address_is_undefined, base);
        T* const to = model::advance(base, static_cast<uint64_t>(index.get(lane)));
        if (std::find(stored, end, to) != end) {
            model::report("racecheck", "one Scatter has an index twice: one of the values is lost", to);
        }
        *end++ = to;
        model::store(to, from, bit, sizeof(T), {});
    }
}
template <class T, LoadDist dist = LoadDist::DIST_NORM, const RegTrait& trait>
void DataCopy(RegTensor<T, trait>& to, const T* from, AddrReg address = {0}, model::Site site = {}) {
    LoadAlign<T, dist>(to, from, address, site);
}
template <class T, StoreDist dist = StoreDist::DIST_NORM>
void DataCopy(T* to, const RegTensor<T>& from, const MaskReg& mask, model::Site site = {}) {
    StoreAlign<T, dist>(to, from, mask, site);
}
template <class T, StoreDist dist = StoreDist::DIST_NORM>
void DataCopy(T* to, const RegTensor<T>& from, AddrReg address, const MaskReg& mask, model::Site site = {}) {
    StoreAlign<T, dist>(to, from, address, mask, site);
}
template <class T, PostLiteral post, LoadDist dist = LoadDist::DIST_NORM, const RegTrait& trait>
void DataCopy(RegTensor<T, trait>& to, T*& from, int32_t step, model::Site site = {}) {
    LoadAlign<T, post, dist>(to, from, step, site);
}
template <class T, PostLiteral post, StoreDist dist = StoreDist::DIST_NORM>
void DataCopy(T*& to, const RegTensor<T>& from, int32_t step, const MaskReg& mask, model::Site site = {}) {
    StoreAlign<T, post, dist>(to, from, step, mask, site);
}
template <class T>
void DataCopyUnAlign(RegTensor<T>& to, UnalignRegForLoad& buffer, T*& from, uint32_t step, model::Site site = {}) {
    LoadUnAlign(to, buffer, from, step, site);
}
template <class T>
void DataCopyUnAlign(T*& to, const RegTensor<T>& from, UnalignRegForStore& buffer, uint32_t count, model::Site site = {}) {
    StoreUnAlign(to, from, buffer, count, site);
}

// Names that headers shared between kernels need: a kernel that calls one of these functions does not link.
#define MODEL_UNKNOWN(Name)                                     \
    template <auto... options, class... T> void Name(T&&...);   \
    template <class First, auto... options, class... T> void Name(T&&...);
MODEL_UNKNOWN(Interleave) MODEL_UNKNOWN(DeInterleave) MODEL_UNKNOWN(ReduceSum)
#undef MODEL_UNKNOWN
template <class To, class From, const CastTrait& trait>
void Cast(RegTensor<To>& to, const RegTensor<From, RegTraitNumTwo>& from, const MaskReg& mask);
}  // namespace MicroAPI
namespace Reg = MicroAPI;
}  // namespace AscendC
