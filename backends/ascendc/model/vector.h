// The vector instructions of A2 and A3, which work on UB: repeats of 256 bytes, masks, strides of blocks, and what each
// function computes of one element. All lanes of a repeat are loaded before the first is stored [constraints: overlap].
#pragma once
#include <utility>

#include "copies.h"

namespace AscendC {

constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr uint8_t MAX_REPEAT_TIMES = 255;  // [repeats and strides: repeatTime]
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

// Which lanes of a repeat take part, as the kernel says it: the first so many, or bit by bit. [mask: Normal mode]
struct Mask {
    Bits bits;
    Site site;
    Mask(uint64_t lanes, Site site = {}) : bits(Bits::first(std::min<uint64_t>(lanes, 256))), site(site) {}
    Mask(const uint64_t* words, Site site = {}) : bits{{words[0], words[1]}}, site(site) {}
};
struct Count {
    uint64_t lanes;
    Site site;
    Count(uint64_t lanes, Site site = {}) : lanes(lanes), site(site) {}
};
// Which lanes of each repeat take part, a bit a lane; at most so many lanes are in a repeat.
struct Plan {
    Bits mask, last;  // of all repeats but the last
    uint32_t repeats;
    Site site;

    Plan(const Mask& given, uint32_t repeats, uint32_t most) : mask(given.bits), repeats(repeats), site(given.site) {
        const Bits all = Bits::first(most);
        for (int word = 0; word < 4; ++word) mask.words[word] &= all.words[word];
        last = mask;
    }
    Plan(const Count& count, uint32_t most)
        : mask(Bits::first(most)), repeats(static_cast<uint32_t>((count.lanes + most - 1) / most)), site(count.site) {
        last = Bits::first(count.lanes - (repeats ? repeats - 1 : 0) * most);
    }
    const Bits& operator[](uint32_t repeat) const { return repeat + 1 == repeats ? last : mask; }
};

// An operand: where each lane of each repeat lies. [repeats and strides]
template <class T> struct View {
    LocalTensor<T> tensor;
    uint32_t block_stride = 1, repeat_stride = 8;

    // Lanes that take part and lie side by side: their place, the first of their bytes in the repeat, and how many bytes.
    template <class Visit> void each_run(uint32_t repeat, const Bits& mask, Visit visit) const {
        constexpr uint32_t per_block = block_bytes / sizeof(T);
        for (uint32_t word = 0; word < 4; ++word) {
            for (uint64_t left = mask.words[word]; left;) {
                const auto bit = static_cast<uint32_t>(__builtin_ctzll(left)), lane = word * 64 + bit;
                const uint64_t gaps = ~(left >> bit), row = uint64_t{repeat} * repeat_stride;
                uint32_t count = gaps ? static_cast<uint32_t>(__builtin_ctzll(gaps)) : 64;
                if (block_stride != 1) count = std::min(count, per_block - lane % per_block);
                const uint64_t offset = (row + lane / per_block * block_stride) * block_bytes + lane % per_block * sizeof(T);
                visit(advance(tensor.address(), offset), lane * sizeof(T), count * sizeof(T));
                left &= ~(~uint64_t{0} >> (64 - count) << bit);
            }
        }
    }
    Lanes<T> load(uint32_t repeat, const Bits& mask) const {
        Lanes<T> lanes;
        each_run(repeat, mask, [&](uint8_t* from, uint32_t at, uint32_t bytes) {
            model::load(lanes, at, from, bytes, tensor.buffer());
        });
        return lanes;
    }
    void store(uint32_t repeat, const Bits& mask, const Lanes<T>& lanes) const {
        each_run(repeat, mask, [&](uint8_t* to, uint32_t at, uint32_t bytes) {
            model::store(to, lanes, at, bytes, tensor.buffer());
        });
    }
};

inline void not_modelled(const char* name, Site site) {
    begin(Pipe::scalar, name, site);
    report("launchcheck", "the model does not have this function: what the kernel computes from here is not its own");
}
// Calls compute(repeat, mask) for each repeat.
template <class Compute, class... Operands>
void each_repeat(const char* name, const Plan& plan, Compute compute, const Operands&... operands) {
    begin(Pipe::vector, name, plan.site);
    (require_alignment(operands.address()), ...);
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) compute(repeat, plan[repeat]);
}
// to[lane] = f(from[lane]...) in the lanes of each repeat. Undefined is a lane that hangs on an undefined one; of functions
// bit by bit, a byte that is another where undefined ones hold zeros than where they hold ones.
enum class Spread { lanes, bytes };
template <class T> Lanes<T> filled(Lanes<T> lanes, uint8_t fill) {
    for (uint32_t byte = 0; byte < repeat_bytes; ++byte) if (lanes.unknown[byte]) lanes.value[byte] = fill;
    return lanes;
}
template <Spread spread = Spread::lanes, class To, class Function, class... From>
void map(const char* name, const Plan& plan, Function f, const View<To>& to, const View<From>&... from) {
    constexpr uint32_t count = std::min({Lanes<To>::count, Lanes<From>::count...});
    const auto all = [&](const Bits& mask, Lanes<To> result, const Lanes<From>&... lanes) {
        for (uint32_t lane = 0; lane < count; ++lane) if (mask[lane]) result.set(lane, f(lanes.get(lane)...));
        return result;
    };
    const auto compute = [&](const Bits& mask, const Lanes<From>&... lanes) {
        Lanes<To> result = all(mask, Lanes<To>(), lanes...);
        if (!(lanes.unknown.any() || ...)) return result;
        if constexpr (spread == Spread::bytes) {
            const Lanes<To> ones = all(mask, result, filled(lanes, 0xff)...), zeros = all(mask, result, filled(lanes, 0)...);
            for (uint32_t i = 0; i < repeat_bytes; ++i) result.unknown.set(i, 1, ones.value[i] != zeros.value[i]);
            return result;
        }
        for (uint32_t lane = 0; lane < count; ++lane) {
            result.unknown.set(lane * sizeof(To), sizeof(To), !(lanes.knows(lane) && ...));
        }
        return result;
    };
    const auto one = [&](uint32_t repeat, const Bits& mask) {
        to.store(repeat, mask, compute(mask, from.load(repeat, mask)...));
    };
    each_repeat(name, plan, one, to.tensor, from.tensor...);
}
template <Spread spread = Spread::lanes, class To, class Function, class... From>
void map(const char* name, const Count& count, Function f, const LocalTensor<To>& to, const LocalTensor<From>&... from) {
    constexpr uint32_t most = repeat_bytes / std::max({sizeof(To), sizeof(From)...});
    map<spread>(name, Plan(count, most), f, View<To>{to, 1, static_cast<uint32_t>(most * sizeof(To) / block_bytes)},
                View<From>{from, 1, static_cast<uint32_t>(most * sizeof(From) / block_bytes)}...);
}

// One bit a lane, or, of masks of registers, every `step` lanes.
struct Choice {
    Bits on, unknown;
};
template <uint32_t step = 1, class Register>
Choice compare(const Choice& mask, CMPMODE mode, const Register& a, const Register& b) {
    Choice result;
    for (uint32_t lane = 0; lane < a.count; ++lane) {
        const uint32_t bit = lane * step;
        if (!mask.on[bit] && !mask.unknown[bit]) continue;
        result.on.set(bit, 1, mask.on[bit] && compare(mode, a.get(lane), b.get(lane)));
        result.unknown.set(bit, 1, mask.unknown[bit] || !a.knows(lane) || !b.knows(lane));
    }
    return result;
}
template <uint32_t step = 1, class Register> Register select(const Choice& mask, const Register& a, const Register& b) {
    Register result;
    for (uint32_t lane = 0; lane < a.count; ++lane) {
        const Register& chosen = mask.on[lane * step] ? a : b;
        result.set(lane, chosen.get(lane), chosen.knows(lane) && !mask.unknown[lane * step]);
    }
    return result;
}
}  // namespace model

namespace AscendC {

// Each function in its two forms: so many elements side by side; repeats with mask and strides. [Add, Adds, ...: prototypes]
#define MODEL_BINARY(Name, spread, operation)                                                                          \
    template <class T> void Name(const LocalTensor<T>& to, const LocalTensor<T>& a, const LocalTensor<T>& b,           \
                                 model::Mask mask, uint8_t repeats, const BinaryRepeatParams& p) {                     \
        using View = model::View<T>;                                                                                   \
        const model::Plan plan(mask, repeats, model::Lanes<T>::count);                                                 \
        model::map<model::Spread::spread>(#Name, plan, [](T x, T y) -> T { return operation; },                        \
                   View{to, p.dstBlkStride, p.dstRepStride}, View{a, p.src0BlkStride, p.src0RepStride},                \
                   View{b, p.src1BlkStride, p.src1RepStride});                                                         \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, model::Count count) {        \
        model::map<model::Spread::spread>(#Name, count, [](T x, T y) -> T { return operation; }, to, a, b);            \
    }
MODEL_BINARY(Add, lanes, model::add(x, y))
MODEL_BINARY(Sub, lanes, model::subtract(x, y))
MODEL_BINARY(Mul, lanes, model::multiply(x, y))
MODEL_BINARY(Div, lanes, model::divide(x, y))
MODEL_BINARY(Max, lanes, model::extreme<true>(x, y))
MODEL_BINARY(Min, lanes, model::extreme<false>(x, y))
MODEL_BINARY(And, bytes, static_cast<T>(x & y))
MODEL_BINARY(Or, bytes, static_cast<T>(x | y))
#undef MODEL_BINARY

#define MODEL_UNARY(Name, spread, argument, operation)                                                                 \
    template <class T> void Name(const LocalTensor<T>& to, const LocalTensor<T>& from argument, model::Mask mask,      \
                                 uint8_t repeats, const UnaryRepeatParams& p) {                                        \
        using View = model::View<T>;                                                                                   \
        const model::Plan plan(mask, repeats, model::Lanes<T>::count);                                                 \
        model::map<model::Spread::spread>(#Name, plan, [=](T x) -> T { return operation; },                            \
                   View{to, p.dstBlkStride, p.dstRepStride}, View{from, p.srcBlkStride, p.srcRepStride});              \
    }                                                                                                                  \
    template <class T> void Name(const LocalTensor<T>& to, const LocalTensor<T>& from argument, model::Count count) {  \
        model::map<model::Spread::spread>(#Name, count, [=](T x) -> T { return operation; }, to, from);                \
    }
#define MODEL_SCALAR , model::Same<T> scalar
MODEL_UNARY(Adds, lanes, MODEL_SCALAR, model::add(x, scalar))
MODEL_UNARY(Muls, lanes, MODEL_SCALAR, model::multiply(x, scalar))
MODEL_UNARY(Maxs, lanes, MODEL_SCALAR, model::extreme<true>(x, scalar))
MODEL_UNARY(Mins, lanes, MODEL_SCALAR, model::extreme<false>(x, scalar))
MODEL_UNARY(Not, bytes, , static_cast<T>(~x))
#undef MODEL_SCALAR
#undef MODEL_UNARY

// [Duplicate]
template <class T> void Duplicate(const LocalTensor<T>& to, model::Same<T> value, model::Mask mask, uint8_t repeats,
                                  uint16_t block_stride, uint8_t repeat_stride) {
    model::map("Duplicate", model::Plan(mask, repeats, model::Lanes<T>::count), [=] { return value; },
               model::View<T>{to, block_stride, repeat_stride});
}
template <class T> void Duplicate(const LocalTensor<T>& to, model::Same<T> value, model::Count count) {
    model::map("Duplicate", count, [=] { return value; }, to);
}

// [Arange], [CreateVecIndex]: equal steps.
template <class T>
void Arange(const LocalTensor<T>& to, model::Same<T> first, model::Same<T> step, int32_t count, model::Site site = {}) {
    const auto next = [=]() mutable { return std::exchange(first, model::add(first, step)); };
    model::map("Arange", model::Count(count, site), next, to);
}
template <class T>
void ArithProgression(const LocalTensor<T>& to, model::Same<T> first, model::Same<T> step, int32_t count, model::Site site = {}) {
    Arange(to, first, step, count, site);
}
template <class T>
void CreateVecIndex(const LocalTensor<T>& to, model::Same<T> first, uint32_t count, model::Site site = {}) {
    Arange(to, first, T(1), count, site);
}

// [Copy(UBToUB with mask)]
template <class T> void Copy(const LocalTensor<T>& to, const LocalTensor<T>& from, model::Mask mask, uint8_t repeats,
                             const CopyRepeatParams& p) {
    model::map<model::Spread::bytes>("Copy", model::Plan(mask, repeats, model::Lanes<T>::count), [](T x) { return x; },
               model::View<T>{to, p.dstStride, p.dstRepeatSize}, model::View<T>{from, p.srcStride, p.srcRepeatSize});
}
// [DataCopy(UBToUB, sliced)]
template <class T>
void DataCopy(const LocalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site) {
    constexpr uint64_t per_block = model::block_bytes / sizeof(T);
    for (uint64_t row = 0; row < p.blockCount; ++row) {
        model::map<model::Spread::bytes>("DataCopy", model::Count(p.blockLen * per_block, site), [](T x) { return x; },
                   to[row * (p.blockLen + p.dstStride) * per_block], from[row * (p.blockLen + p.srcStride) * per_block]);
    }
}

// [Cast]: lanes are counted by the larger of the two types.
template <class To, class From> void Cast(const LocalTensor<To>& to, const LocalTensor<From>& from, RoundMode mode,
                                          model::Mask mask, uint8_t repeats, const UnaryRepeatParams& p) {
    constexpr uint32_t most = std::min(model::Lanes<To>::count, model::Lanes<From>::count);
    model::map("Cast", model::Plan(mask, repeats, most), [=](From x) { return model::convert<To>(x, mode); },
               model::View<To>{to, p.dstBlkStride, p.dstRepStride}, model::View<From>{from, p.srcBlkStride, p.srcRepStride});
}
template <class To, class From>
void Cast(const LocalTensor<To>& to, const LocalTensor<From>& from, RoundMode mode, model::Count count) {
    model::map("Cast", count, [=](From x) { return model::convert<To>(x, mode); }, to, from);
}
inline float ToFloat(bfloat16_t value) { return value; }

// [ReduceMax]: the greatest and the first place where it is, in the bits of the type; the first NaN [assumption
// maximum_is_ieee]. A2 and A3 put what the rounds give, two elements a repeat, into the working space.
template <class T> void ReduceMax(const LocalTensor<T>& to, const LocalTensor<T>& from, const LocalTensor<T>& work,
                                  int32_t count, bool with_index = false, model::Site site = {}) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "b16 or b32");
    constexpr uint32_t most = model::Lanes<T>::count, per_block = model::block_bytes / sizeof(T);
    const auto all = static_cast<uint32_t>(count);
    if (count <= 0) return;
    model::Lanes<T> result;
    uint32_t place = 0;
    bool is_known = true;
    const auto compute = [&](uint32_t repeat, const model::Bits& mask) {
        const model::Lanes<T> lanes = model::View<T>{from}.load(repeat, mask);
        for (uint32_t lane = 0; lane < most && mask[lane]; ++lane) {
            is_known &= lanes.knows(lane);
            if (repeat + lane && !model::is_better<true>(lanes.get(lane), result.get(0))) continue;
            result.set(0, lanes.get(lane)), place = repeat * most + lane;
        }
    };
    model::each_repeat("ReduceMax", model::Plan(model::Count(all, site), most), compute, from, work);
    uint32_t used = 0;
    for (uint32_t made = all / most * 2;; made = (made + most - 1) / most * 2) {
        used += (made + per_block - 1) / per_block * per_block;
        if (made <= 2 || !with_index) break;
    }
    model::Bytes garbage;
    garbage.unknown = model::Bits::first(model::repeat_bytes);
    for (uint32_t at = 0; at < used && __CCE_AICORE__ == 220; at += per_block) {
        model::store(work[at].address(), garbage, 0, model::block_bytes, work.buffer());
    }
    result.set(0, result.get(0), is_known);
    result.set(1, model::bits_of<T>(static_cast<model::Bits_of<T>>(place)), is_known);
    model::store(to.address(), result, 0, sizeof(T) << with_index, to.buffer());
}
// [Cast (float to half and int32_t)], by its former name.
template <class From, class To, RoundMode mode> To ScalarCast(From value) { return model::convert<To>(value, mode); }

// [Compare]: a bit a lane, lowest first. Only 950 heeds the mask (lanes without a bit give 0); A2 and A3 take all lanes.
// A byte of bits is undefined where all of its lanes are: bit by bit would be exact.
template <class Bit, class T> void compare(const LocalTensor<Bit>& to, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                           CMPMODE mode, const model::Plan& plan, const BinaryRepeatParams& p) {
    constexpr uint32_t bytes = model::Lanes<T>::count / 8;
    const model::View<T> first{a, p.src0BlkStride, p.src0RepStride}, second{b, p.src1BlkStride, p.src1RepStride};
    const auto compute = [&](uint32_t repeat, const model::Bits& mask) {
        const model::Choice choice = model::compare({mask, {}}, mode, first.load(repeat, mask), second.load(repeat, mask));
        model::Bytes packed;
        std::memcpy(packed.value, choice.on.words, bytes);
        for (uint32_t byte = 0; byte < bytes; ++byte) {
            packed.unknown.set(byte, 1, (choice.unknown.from(byte * 8) & 255) == 255);
        }
        model::store(to.address() + repeat * bytes, packed, 0, bytes, to.buffer());
    };
    model::each_repeat("Compare", plan, compute, to, a, b);
}
template <class T, class Bit> void Compare(const LocalTensor<Bit>& to, const LocalTensor<T>& a, const LocalTensor<T>& b,
                                           CMPMODE mode, model::Count count) {
    constexpr uint32_t most = model::Lanes<T>::count;
    const uint64_t whole = count.lanes / most * most;
    compare(to, a, b, mode, model::Plan(model::Count(whole, count.site), most), BinaryRepeatParams());
    if (count.lanes == whole) return;
    model::report("memcheck", "Compare takes whole repeats of 256 bytes: the rest of its count is left out");
}
template <class T, class Bit, bool sets_mask = true>
void Compare(const LocalTensor<Bit>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, model::Mask mask,
             uint8_t repeats, const BinaryRepeatParams& p) {
    constexpr uint32_t most = model::Lanes<T>::count;
    if (!sets_mask) return model::not_modelled("Compare without isSetMask", mask.site);
    compare(to, a, b, mode, model::Plan(__CCE_AICORE__ == 310 ? mask : model::Mask(most, mask.site), repeats, most), p);
}

// [Select]: the bits of modes 1 and 2 go on from repeat to repeat, those of mode 0 are used again.
template <class T, class Bit, class Second>
void select(const LocalTensor<T>& to, const LocalTensor<Bit>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode,
            const model::Plan& plan, const BinaryRepeatParams& p) {
    constexpr uint32_t bytes = model::Lanes<T>::count / 8;
    const auto compute = [&](uint32_t repeat, const model::Bits& mask) {
        model::Lanes<T> second;
        if constexpr (std::is_convertible<Second, T>::value) {
            for (uint32_t lane = 0; lane < second.count; ++lane) second.set(lane, static_cast<T>(b));
        } else {
            second = model::View<T>{b, p.src1BlkStride, p.src1RepStride}.load(repeat, mask);
        }
        const uint8_t* const from = bits.address() + (mode == SELMODE::VSEL_CMPMASK_SPR ? 0 : repeat * bytes);
        model::Choice choice;
        for (uint32_t byte = 0; byte < bytes; ++byte) {
            if (!mask.any(byte * 8, 8)) continue;
            model::Lanes<uint8_t> eight;
            model::load(eight, 0, from + byte, 1, bits.buffer());
            choice.on.add(byte * 8, eight.get(0));
            choice.unknown.add(byte * 8, eight.knows(0) ? 0 : 255);
        }
        const model::Lanes<T> first = model::View<T>{a, p.src0BlkStride, p.src0RepStride}.load(repeat, mask);
        model::View<T>{to, p.dstBlkStride, p.dstRepStride}.store(repeat, mask, model::select(choice, first, second));
    };
    model::each_repeat("Select", plan, compute, to, bits, a);
}
template <class T, class Bit, class Second>
void Select(const LocalTensor<T>& to, const LocalTensor<Bit>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode,
            model::Count count) {
    select(to, bits, a, b, mode, model::Plan(count, model::Lanes<T>::count), BinaryRepeatParams());
}
template <class T, class Bit, class Second>
void Select(const LocalTensor<T>& to, const LocalTensor<Bit>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode,
            model::Mask mask, uint8_t repeats, const BinaryRepeatParams& p) {
    select(to, bits, a, b, mode, model::Plan(mask, repeats, model::Lanes<T>::count), p);
}

// [TransDataTo5HD]: sixteen blocks are transposed. Of b16, block i of the result takes element i of every block; of b32 two
// blocks of the result share an element. With one repeat the strides are offsets [table 3]. b8 is not modelled.
template <class T> void TransDataTo5HD(uint64_t to[NCHW_CONV_ADDR_LIST_SIZE], uint64_t from[NCHW_CONV_ADDR_LIST_SIZE],
                                       const TransDataTo5HDParams& p, model::Site site = {}) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "b16 or b32");
    model::begin(model::Pipe::vector, "TransDataTo5HD", site);
    for (uint32_t repeat = 0; repeat < p.repeatTimes; ++repeat) {
        const uint64_t step = (p.repeatTimes == 1 ? 1 : repeat) * model::block_bytes;
        const auto block = [](uint64_t address) {
            model::require_alignment(reinterpret_cast<uint8_t*>(address));
            return reinterpret_cast<uint8_t*>(address);
        };
        model::Lanes<T> in[16];
        for (int i = 0; i < 16; ++i) model::load(in[i], 0, block(from[i] + step * p.srcRepStride), model::block_bytes, {});
        for (int i = 0; i < 16; ++i) {
            model::Lanes<T> out;
            for (uint32_t lane = 0; lane < model::block_bytes / sizeof(T); ++lane) {
                const model::Lanes<T>& source = in[sizeof(T) == 4 ? i % 2 * 8 + lane : lane];
                const uint32_t element = sizeof(T) == 4 ? i / 2 : i;
                out.set(lane, source.get(element), source.knows(element));
            }
            model::store(block(to[i] + step * p.dstRepStride), out, 0, model::block_bytes, {});
        }
    }
}
template <class T> void TransDataTo5HD(const LocalTensor<T> (&to)[NCHW_CONV_ADDR_LIST_SIZE],
                                       const LocalTensor<T> (&from)[NCHW_CONV_ADDR_LIST_SIZE],
                                       const TransDataTo5HDParams& p, model::Site site = {}) {
    uint64_t addresses[2][NCHW_CONV_ADDR_LIST_SIZE];
    for (int i = 0; i < 16; ++i) addresses[0][i] = to[i].GetPhyAddr(), addresses[1][i] = from[i].GetPhyAddr();
    TransDataTo5HD<T>(addresses[0], addresses[1], p, site);
}

// Named, so that kernels compile, and not modelled: what templates use that no call of the library reaches.
enum class MaskMode : uint8_t { NORMAL = 0, COUNTER };
inline void SetMaskCount(model::Site site = {}) { model::not_modelled("SetMaskCount", site); }
template <class T, MaskMode> void SetVectorMask(int32_t, model::Site site = {}) { model::not_modelled("SetVectorMask", site); }
template <class T> void SetAtomicMax(model::Site site = {}) { model::not_modelled("SetAtomicMax", site); }
template <class T> void Floor(const LocalTensor<T>&, const LocalTensor<T>&, uint32_t, model::Site site = {}) {
    model::not_modelled("Floor", site);
}
struct BrcbRepeatParams {
    uint16_t dstBlkStride = 1, dstRepStride = 8;
};
template <class T>
void Brcb(const LocalTensor<T>&, const LocalTensor<T>&, uint8_t, const BrcbRepeatParams&, model::Site site = {}) {
    model::not_modelled("Brcb", site);
}
}  // namespace AscendC
