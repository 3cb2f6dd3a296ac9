// The vector instructions of A2 and A3, which work on UB: repeats of 256 bytes, masks, strides of blocks, and what each
// function computes of one element. All lanes of a repeat are loaded before the first is stored [constraints: overlap].
#pragma once
#include "copies.h"

namespace AscendC {

constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr int NCHW_CONV_ADDR_LIST_SIZE = 16;

// [UnaryRepeatParams], [BinaryRepeatParams], [Copy: CopyRepeatParams]: strides in blocks; those of 8 bits wrap.
struct UnaryRepeatParams {
    uint16_t dstBlkStride = 1, srcBlkStride = 1;
    uint8_t dstRepStride = 8, srcRepStride = 8;
    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t to_block, uint16_t from_block, uint8_t to_repeat, uint8_t from_repeat)
        : dstBlkStride(to_block), srcBlkStride(from_block), dstRepStride(to_repeat), srcRepStride(from_repeat) {}
};
struct BinaryRepeatParams {
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t to_block, uint8_t block0, uint8_t block1, uint8_t to_repeat, uint8_t repeat0, uint8_t repeat1)
        : dstBlkStride(to_block), src0BlkStride(block0), src1BlkStride(block1),
          dstRepStride(to_repeat), src0RepStride(repeat0), src1RepStride(repeat1) {}
};
struct CopyRepeatParams {
    uint16_t dstStride = 1, srcStride = 1, dstRepeatSize = 8, srcRepeatSize = 8;
    CopyRepeatParams() = default;
    CopyRepeatParams(uint16_t to_block, uint16_t from_block, uint16_t to_repeat, uint16_t from_repeat)
        : dstStride(to_block), srcStride(from_block), dstRepeatSize(to_repeat), srcRepeatSize(from_repeat) {}
};
struct TransDataTo5HDParams {
    bool dstHighHalf = false, srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0, srcRepStride = 0;
};
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };

}  // namespace AscendC

namespace model {
using AscendC::LocalTensor;

template <class T>
constexpr uint32_t lanes_of = repeat_bytes / sizeof(T);

// Which lanes of each repeat take part, a bit a lane. [mask: Normal mode]
struct Plan {
    Bits mask, last;  // of all repeats but the last
    uint32_t repeats;

    static Bits first(uint64_t lanes) {
        Bits mask;
        for (uint64_t word = 0; word * 64 < lanes; ++word) mask.set(word * 64, std::min<uint64_t>(lanes - word * 64, 64), true);
        return mask;
    }
    static Plan of_count(uint64_t lanes, uint32_t most) {
        const uint64_t repeats = (lanes + most - 1) / most;
        return {first(most), first(lanes - (repeats ? repeats - 1 : 0) * most), static_cast<uint32_t>(repeats)};
    }
    static Plan of(uint64_t lanes, uint32_t repeats, uint32_t most) {
        const Bits mask = first(std::min<uint64_t>(lanes, most));
        return {mask, mask, repeats};
    }
    static Plan of(const uint64_t* bits, uint32_t repeats, uint32_t most) {
        const Bits mask{{bits[0], most > 64 ? bits[1] : 0}};
        return {mask, mask, repeats};
    }
    const Bits& operator[](uint32_t repeat) const { return repeat + 1 == repeats ? last : mask; }
};

// An operand: where each lane of each repeat lies. [repeats and strides]
template <class T>
struct View {
    LocalTensor<T> tensor;
    uint32_t block_stride = 1, repeat_stride = 8;

    // Lanes that take part and lie side by side.
    template <class Visit>
    void each_run(uint32_t repeat, const Bits& mask, Visit visit) const {
        constexpr uint32_t per_block = block_bytes / sizeof(T);
        for (uint32_t word = 0; word < 4; ++word) {
            for (uint64_t left = mask.words[word]; left;) {
                const auto bit = static_cast<uint32_t>(__builtin_ctzll(left)), lane = word * 64 + bit;
                const uint64_t gaps = ~(left >> bit);
                uint32_t count = gaps ? static_cast<uint32_t>(__builtin_ctzll(gaps)) : 64;
                if (block_stride != 1) count = std::min(count, per_block - lane % per_block);
                const uint64_t block = uint64_t{repeat} * repeat_stride + lane / per_block * block_stride;
                visit(advance(tensor.address(), block * block_bytes + lane % per_block * sizeof(T)), lane * sizeof(T), count * sizeof(T));
                left &= ~(~uint64_t{0} >> (64 - count) << bit);
            }
        }
    }
    Lanes<T> load(uint32_t repeat, const Bits& mask) const {
        Lanes<T> lanes;
        each_run(repeat, mask, [&](uint8_t* from, uint32_t at, uint32_t bytes) { model::load(lanes, at, from, bytes, tensor.buffer()); });
        return lanes;
    }
    void store(uint32_t repeat, const Bits& mask, const Lanes<T>& lanes) const {
        each_run(repeat, mask, [&](uint8_t* to, uint32_t at, uint32_t bytes) { model::store(to, lanes, at, bytes, tensor.buffer()); });
    }
};

// to[lane] = f(from[lane]...) in the lanes of the mask, which has a bit every `step` lanes; undefined where a source is.
template <uint32_t step, class To, class Function, class... From>
void each_lane(Lanes<To>& to, const Bits& mask, Function f, const Lanes<From>&... from) {
    constexpr uint32_t count = std::min({Lanes<To>::count, Lanes<From>::count...});
    const bool all_known = !(from.unknown.any() || ...);
    for (uint32_t lane = 0; lane < count; ++lane) {
        if (!mask[lane * step]) continue;
        to.set(lane, f(from.get(lane)...));
        if (!all_known) to.unknown.set(lane * sizeof(To), sizeof(To), !(from.knows(lane) && ...));
    }
}
template <class To, class Function, class... From>
void each_repeat(const Plan& plan, const View<To>& to, Function f, const View<From>&... from) {
    require_alignment(to.tensor.address());
    (require_alignment(from.tensor.address()), ...);
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
        Lanes<To> result;
        each_lane<1>(result, plan[repeat], f, from.load(repeat, plan[repeat])...);
        to.store(repeat, plan[repeat], result);
    }
}
template <class To, class Function, class... From>
void each_element(uint64_t count, const LocalTensor<To>& to, Function f, const LocalTensor<From>&... from) {
    constexpr uint32_t most = repeat_bytes / std::max({sizeof(To), sizeof(From)...});
    each_repeat(Plan::of_count(count, most), View<To>{to, 1, static_cast<uint32_t>(most * sizeof(To) / block_bytes)}, f,
                View<From>{from, 1, static_cast<uint32_t>(most * sizeof(From) / block_bytes)}...);
}
}  // namespace model

namespace AscendC {

// Each function in its two forms: so many elements side by side; repeats with mask and strides. [Add, Adds, ...: prototypes]
#define MODEL_BINARY(Name, operation)                                                                                      \
    template <class T, class M>                                                                                            \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, const M& mask, uint8_t repeats,  \
              const BinaryRepeatParams& p, model::Site site = {}) {                                                        \
        model::begin(model::Pipe::vector, #Name, site);                                                                    \
        model::each_repeat(model::Plan::of(mask, repeats, model::lanes_of<T>),                                             \
                           model::View<T>{to, p.dstBlkStride, p.dstRepStride}, [](T x, T y) -> T { return operation; },    \
                           model::View<T>{a, p.src0BlkStride, p.src0RepStride},                                            \
                           model::View<T>{b, p.src1BlkStride, p.src1RepStride});                                           \
    }                                                                                                                      \
    template <class T>                                                                                                     \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, int32_t count, model::Site site = {}) { \
        model::begin(model::Pipe::vector, #Name, site);                                                                    \
        model::each_element(count, to, [](T x, T y) -> T { return operation; }, a, b);                                     \
    }
MODEL_BINARY(Add, model::add(x, y))
MODEL_BINARY(Sub, model::subtract(x, y))
MODEL_BINARY(Mul, model::multiply(x, y))
MODEL_BINARY(Div, model::divide(x, y))
MODEL_BINARY(Max, model::extreme<true>(x, y))
MODEL_BINARY(Min, model::extreme<false>(x, y))
MODEL_BINARY(And, static_cast<T>(x & y))
MODEL_BINARY(Or, static_cast<T>(x | y))
#undef MODEL_BINARY

#define MODEL_UNARY(Name, argument, operation)                                                                             \
    template <class T, class M>                                                                                            \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& from argument, const M& mask, uint8_t repeats,               \
              const UnaryRepeatParams& p, model::Site site = {}) {                                                         \
        model::begin(model::Pipe::vector, #Name, site);                                                                    \
        model::each_repeat(model::Plan::of(mask, repeats, model::lanes_of<T>),                                             \
                           model::View<T>{to, p.dstBlkStride, p.dstRepStride}, [=](T x) -> T { return operation; },        \
                           model::View<T>{from, p.srcBlkStride, p.srcRepStride});                                          \
    }                                                                                                                      \
    template <class T>                                                                                                     \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& from argument, int32_t count, model::Site site = {}) {       \
        model::begin(model::Pipe::vector, #Name, site);                                                                    \
        model::each_element(count, to, [=](T x) -> T { return operation; }, from);                                         \
    }
#define MODEL_SCALAR , model::Same<T> scalar
MODEL_UNARY(Adds, MODEL_SCALAR, model::add(x, scalar))
MODEL_UNARY(Muls, MODEL_SCALAR, model::multiply(x, scalar))
MODEL_UNARY(Maxs, MODEL_SCALAR, model::extreme<true>(x, scalar))
MODEL_UNARY(Mins, MODEL_SCALAR, model::extreme<false>(x, scalar))
MODEL_UNARY(Not, , static_cast<T>(~x))
#undef MODEL_SCALAR
#undef MODEL_UNARY

// [Duplicate]
template <class T, class M>
void Duplicate(const LocalTensor<T>& to, model::Same<T> value, const M& mask, uint8_t repeats, uint16_t block_stride,
               uint8_t repeat_stride, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Duplicate", site);
    model::each_repeat(model::Plan::of(mask, repeats, model::lanes_of<T>), model::View<T>{to, block_stride, repeat_stride}, [=] { return value; });
}
template <class T>
void Duplicate(const LocalTensor<T>& to, model::Same<T> value, int32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Duplicate", site);
    model::each_element(count, to, [=] { return value; });
}

// [Copy(UBToUB with mask)]
template <class T, class M>
void Copy(const LocalTensor<T>& to, const LocalTensor<T>& from, const M& mask, uint8_t repeats, const CopyRepeatParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Copy", site);
    model::each_repeat(model::Plan::of(mask, repeats, model::lanes_of<T>), model::View<T>{to, p.dstStride, p.dstRepeatSize},
                       [](T x) { return x; }, model::View<T>{from, p.srcStride, p.srcRepeatSize});
}
// [DataCopy(UBToUB, sliced)]
template <class T>
void DataCopy(const LocalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site) {
    model::begin(model::Pipe::vector, "DataCopy", site);
    constexpr uint64_t per_block = model::block_bytes / sizeof(T);
    for (uint64_t row = 0; row < p.blockCount; ++row) {
        model::each_element(p.blockLen * per_block, to[row * (p.blockLen + p.dstStride) * per_block], [](T x) { return x; },
                            from[row * (p.blockLen + p.srcStride) * per_block]);
    }
}

// [Cast]: lanes are counted by the larger of the two types.
template <class To, class From, class M>
void Cast(const LocalTensor<To>& to, const LocalTensor<From>& from, RoundMode mode, const M& mask, uint8_t repeats,
          const UnaryRepeatParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Cast", site);
    model::each_repeat(model::Plan::of(mask, repeats, std::min(model::lanes_of<To>, model::lanes_of<From>)),
                       model::View<To>{to, p.dstBlkStride, p.dstRepStride}, [=](From x) { return model::convert<To>(x, mode); },
                       model::View<From>{from, p.srcBlkStride, p.srcRepStride});
}
template <class To, class From>
void Cast(const LocalTensor<To>& to, const LocalTensor<From>& from, RoundMode mode, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Cast", site);
    model::each_element(count, to, [=](From x) { return model::convert<To>(x, mode); }, from);
}
inline float ToFloat(bfloat16_t value) { return value; }

// [Compare]: a bit a lane, lowest first. Only 950 heeds the mask (lanes without a bit give 0); A2 and A3 take all lanes.
// A byte of bits is undefined where all of its lanes are: bit by bit would be exact.
template <class Bit, class T>
void compare_lanes(const model::Plan& plan, const LocalTensor<Bit>& to, CMPMODE mode, const model::View<T>& a, const model::View<T>& b) {
    for (const uint8_t* address : {to.address(), a.tensor.address(), b.tensor.address()}) model::require_alignment(address);
    constexpr uint32_t bytes = model::lanes_of<T> / 8;
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
        const model::Bits& mask = plan[repeat];
        const model::Lanes<T> x = a.load(repeat, mask), y = b.load(repeat, mask);
        model::Lanes<uint8_t> result;
        for (uint32_t byte = 0; byte < bytes; ++byte) {
            bool is_known = !mask.any(byte * 8, 8);
            for (uint32_t lane = byte * 8; lane < byte * 8 + 8; ++lane) {
                if (!mask[lane]) continue;
                result.value[byte] |= model::compare(mode, x.get(lane), y.get(lane)) << lane % 8;
                is_known = is_known || (x.knows(lane) && y.knows(lane));
            }
            result.unknown.set(byte, 1, !is_known);
        }
        model::store(to.address() + repeat * bytes, result, 0, bytes, to.buffer());
    }
}
template <class Bit, class T>
void Compare(const LocalTensor<Bit>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Compare", site);
    constexpr uint32_t most = model::lanes_of<T>;
    if (count % most) model::report("memcheck", "Compare takes whole repeats of 256 bytes: what is left of its count is not compared");
    compare_lanes(model::Plan::of_count(count / most * most, most), to, mode, model::View<T>{a}, model::View<T>{b});
}
template <class Bit, class T, class M>
void Compare(const LocalTensor<Bit>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, const M& mask,
             uint8_t repeats, const BinaryRepeatParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Compare", site);
    constexpr uint64_t most = model::lanes_of<T>;
    const model::Plan plan = __CCE_AICORE__ == 310 ? model::Plan::of(mask, repeats, most) : model::Plan::of(most, repeats, most);
    compare_lanes(plan, to, mode, model::View<T>{a, p.src0BlkStride, p.src0RepStride}, model::View<T>{b, p.src1BlkStride, p.src1RepStride});
}

// [Select]: the bits of modes 1 and 2 go on from repeat to repeat, those of mode 0 are used again.
template <class T, class Bit, class Second>
void select_lanes(const LocalTensor<T>& to, const LocalTensor<Bit>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode,
                  const model::Plan& plan, const BinaryRepeatParams& p) {
    for (const uint8_t* address : {to.address(), bits.address(), a.address()}) model::require_alignment(address);
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
        const model::Bits& mask = plan[repeat];
        const model::Lanes<T> x = model::View<T>{a, p.src0BlkStride, p.src0RepStride}.load(repeat, mask);
        model::Lanes<T> y, result;
        if constexpr (std::is_convertible<Second, T>::value) model::each_lane<1>(y, mask, [&] { return static_cast<T>(b); });
        else y = model::View<T>{b, p.src1BlkStride, p.src1RepStride}.load(repeat, mask);
        model::Lanes<uint8_t> chosen;
        constexpr uint32_t bytes = model::lanes_of<T> / 8;
        for (uint32_t byte = 0; byte < bytes; ++byte) {
            if (mask.any(byte * 8, 8)) model::load(chosen, byte, bits.address() + (mode == SELMODE::VSEL_CMPMASK_SPR ? 0 : repeat * bytes) + byte, 1, bits.buffer());
        }
        for (uint32_t lane = 0; lane < model::lanes_of<T>; ++lane) {
            const model::Lanes<T>& source = chosen.value[lane / 8] >> lane % 8 & 1 ? x : y;
            result.set(lane, source.get(lane), source.knows(lane) && chosen.knows(lane / 8));
        }
        model::View<T>{to, p.dstBlkStride, p.dstRepStride}.store(repeat, mask, result);
    }
}
template <class T, class Bit, class Second>
void Select(const LocalTensor<T>& to, const LocalTensor<Bit>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Select", site);
    select_lanes(to, bits, a, b, mode, model::Plan::of_count(count, model::lanes_of<T>), BinaryRepeatParams());
}
template <class T, class Bit, class Second, class M>
void Select(const LocalTensor<T>& to, const LocalTensor<Bit>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode, const M& mask,
            uint8_t repeats, const BinaryRepeatParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Select", site);
    select_lanes(to, bits, a, b, mode, model::Plan::of(mask, repeats, model::lanes_of<T>), p);
}

// [TransDataTo5HD]: sixteen blocks are transposed. Of b16, block i of the result takes element i of every block; of b32 two
// blocks of the result share an element. With one repeat the strides are offsets [table 3]. b8 is not modelled.
template <class T>
void TransDataTo5HD(uint64_t to[NCHW_CONV_ADDR_LIST_SIZE], uint64_t from[NCHW_CONV_ADDR_LIST_SIZE], const TransDataTo5HDParams& p, model::Site site = {}) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "b16 or b32");
    model::begin(model::Pipe::vector, "TransDataTo5HD", site);
    for (uint32_t repeat = 0; repeat < p.repeatTimes; ++repeat) {
        const uint64_t step = p.repeatTimes == 1 ? 1 : repeat;
        model::Lanes<T> in[16];
        for (int i = 0; i < 16; ++i) {
            const auto* const place = reinterpret_cast<const uint8_t*>(from[i] + step * p.srcRepStride * model::block_bytes);
            model::require_alignment(place);
            model::load(in[i], 0, place, model::block_bytes, {});
        }
        for (int i = 0; i < 16; ++i) {
            model::Lanes<T> out;
            for (uint32_t lane = 0; lane < model::block_bytes / sizeof(T); ++lane) {
                const model::Lanes<T>& source = in[sizeof(T) == 4 ? i % 2 * 8 + lane : lane];
                const uint32_t element = sizeof(T) == 4 ? i / 2 : i;
                out.set(lane, source.get(element), source.knows(element));
            }
            auto* const place = reinterpret_cast<uint8_t*>(to[i] + step * p.dstRepStride * model::block_bytes);
            model::require_alignment(place);
            model::store(place, out, 0, model::block_bytes, {});
        }
    }
}
template <class T>
void TransDataTo5HD(const LocalTensor<T> (&to)[NCHW_CONV_ADDR_LIST_SIZE], const LocalTensor<T> (&from)[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& p, model::Site site = {}) {
    uint64_t addresses[2][NCHW_CONV_ADDR_LIST_SIZE];
    for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) addresses[0][i] = to[i].GetPhyAddr(), addresses[1][i] = from[i].GetPhyAddr();
    TransDataTo5HD<T>(addresses[0], addresses[1], p, site);
}
}  // namespace AscendC
