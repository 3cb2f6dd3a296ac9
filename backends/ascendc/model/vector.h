// The vector instructions of A2 and A3, which work on UB: repeats of 256 bytes, masks, strides of blocks, and what each function
// computes of one element. All lanes of a repeat are read before the first is written [general constraints: overlap].
#pragma once
#include "copies.h"

namespace AscendC {

constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr int NCHW_CONV_ADDR_LIST_SIZE = 16;

// [UnaryRepeatParams], [BinaryRepeatParams]: strides of 8 bits wrap as they do in the kernel's own C++.
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
        : dstBlkStride(to_block), src0BlkStride(block0), src1BlkStride(block1), dstRepStride(to_repeat), src0RepStride(repeat0), src1RepStride(repeat1) {}
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

// The lanes of a repeat that take part. [mask: Normal mode]: the first so many, or bit by bit.
struct Mask {
    uint64_t words[4] = {};
    uint32_t count = 0;  // one past the last lane that takes part
    bool is_prefix = true;

    static Mask first(uint64_t lanes, uint32_t most) {
        Mask mask;
        mask.count = static_cast<uint32_t>(std::min<uint64_t>(lanes, most));
        for (uint32_t word = 0; word < 4; ++word) {
            const int64_t left = int64_t{mask.count} - word * 64;
            mask.words[word] = left >= 64 ? ~uint64_t{0} : left > 0 ? (uint64_t{1} << left) - 1 : 0;
        }
        return mask;
    }
    static Mask bitwise(const uint64_t* bits, uint32_t most) {
        Mask mask;
        mask.is_prefix = false;
        for (uint32_t word = 0; word < (most + 63) / 64; ++word) mask.words[word] = bits[word];
        for (mask.count = most; mask.count && !mask[mask.count - 1];) --mask.count;
        return mask;
    }
    bool operator[](uint32_t lane) const { return words[lane / 64] >> (lane % 64) & 1; }
};

// What the kernel sets outside of its calls. [SetVectorMask], [SetMaskCount]
struct MaskState {
    bool is_counter = false;
    uint64_t words[2] = {~uint64_t{0}, ~uint64_t{0}};
};
MaskState& mask_state();

// The repeats of an instruction: in Counter mode as many as the lanes need, the last one cut. [mask: Counter mode]
struct Plan {
    Mask mask, last;
    uint32_t repeats;

    static Plan of_count(uint64_t lanes, uint32_t most) {
        const uint64_t repeats = (lanes + most - 1) / most;
        return {Mask::first(most, most), Mask::first(lanes - (repeats ? repeats - 1 : 0) * most, most), static_cast<uint32_t>(repeats)};
    }
    static Plan of(uint64_t lanes, uint32_t repeats, uint32_t most) {
        if (mask_state().is_counter) return of_count(lanes, most);
        const Mask mask = Mask::first(lanes, most);
        return {mask, mask, mask.count ? repeats : 0};
    }
    static Plan of(const uint64_t* bits, uint32_t repeats, uint32_t most) {
        if (mask_state().is_counter) return of_count(bits[0], most);
        const Mask mask = Mask::bitwise(bits, most);
        return {mask, mask, repeats};
    }
    // As the call says, or, with isSetMask false, as SetVectorMask did.
    template <class M>
    static Plan of(bool is_set, const M& mask, uint32_t repeats, uint32_t most) {
        return is_set ? of(mask, repeats, most) : of(mask_state().words, repeats, most);
    }
    const Mask& operator[](uint32_t repeat) const { return repeat + 1 == repeats ? last : mask; }
};

template <class T>
struct Lanes {
    T value[lanes_of<T>];
    bool all_known = true;
    bool is_known[lanes_of<T>];  // filled where all_known is not

    bool knows(uint32_t lane) const { return all_known || is_known[lane]; }
};

// An operand: where each lane of each repeat lies. [repeats and strides]
template <class T>
struct View {
    LocalTensor<T> tensor;
    uint32_t block_stride = 1, repeat_stride = 8;

    uint8_t* place(uint32_t repeat, uint32_t lane) const {
        constexpr uint32_t per_block = block_bytes / sizeof(T);
        return tensor.address() + (uint64_t{repeat} * repeat_stride + lane / per_block * block_stride) * block_bytes + lane % per_block * sizeof(T);
    }
    // Lanes that take part and lie side by side.
    template <class Visit>
    void runs(uint32_t repeat, const Mask& mask, Visit visit) const {
        constexpr uint32_t per_block = block_bytes / sizeof(T);
        for (uint32_t first = 0; first < mask.count;) {
            uint32_t end = mask.is_prefix ? block_stride == 1 ? mask.count : std::min(mask.count, (first / per_block + 1) * per_block) : first;
            if (!mask.is_prefix) {
                while (end < mask.count && mask[end] && (end == first || block_stride == 1 || end % per_block)) ++end;
            }
            if (end > first) visit(place(repeat, first), first, end - first);
            first = std::max(end, first + 1);
        }
    }
    void read(uint32_t repeat, const Mask& mask, Lanes<T>& lanes) const {
        runs(repeat, mask, [&](const uint8_t* from, uint32_t first, uint32_t count) {
            const bool is_there = reach(from, count * sizeof(T), tensor.buffer(), false);
            if (is_there) std::memcpy(lanes.value + first, from, count * sizeof(T));
            else std::memset(lanes.value + first, 0xa5, count * sizeof(T));
            if (is_there && load(from, count * sizeof(T))) return;
            if (lanes.all_known) std::fill(lanes.is_known, lanes.is_known + lanes_of<T>, true);
            lanes.all_known = false;
            for (uint32_t i = 0; i < count; ++i) lanes.is_known[first + i] = is_there && is_defined(from + i * sizeof(T), sizeof(T));
        });
    }
    void write(uint32_t repeat, const Mask& mask, const Lanes<T>& lanes) const {
        runs(repeat, mask, [&](uint8_t* to, uint32_t first, uint32_t count) {
            if (!reach(to, count * sizeof(T), tensor.buffer(), true)) return;
            store(to, count * sizeof(T));
            std::memcpy(to, lanes.value + first, count * sizeof(T));
            for (uint32_t i = 0; !lanes.all_known && i < count; ++i) {
                if (!lanes.is_known[first + i]) forget(to + i * sizeof(T), sizeof(T));
            }
        });
    }
};

// to[lane] = f(from[lane]...), repeat by repeat.
template <class To, class Function, class... From>
void each_lane(const Plan& plan, const View<To>& to, Function f, const View<From>&... from) {
    require_alignment(to.tensor.address());
    (require_alignment(from.tensor.address()), ...);
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
        const Mask& mask = plan[repeat];
        Lanes<To> result;
        const auto compute = [&](auto&&... lanes) {
            (from.read(repeat, mask, lanes), ...);
            for (uint32_t lane = 0; lane < mask.count; ++lane) {
                if (mask.is_prefix || mask[lane]) result.value[lane] = f(lanes.value[lane]...);
            }
            result.all_known = (lanes.all_known && ...);
            for (uint32_t lane = 0; !result.all_known && lane < mask.count; ++lane) result.is_known[lane] = (lanes.knows(lane) && ...);
        };
        compute(Lanes<From>()...);
        to.write(repeat, mask, result);
    }
}

// The first `count` elements; one check for all of them where everything is defined.
template <class To, class Function, class... From>
void each_element(uint64_t count, const LocalTensor<To>& to, Function f, const LocalTensor<From>&... from) {
    constexpr uint32_t most = repeat_bytes / std::max({sizeof(To), sizeof(From)...});
    const auto whole = [count](const auto& tensor, bool is_store) {
        const uint64_t bytes = count * sizeof(typename std::decay_t<decltype(tensor)>::PrimType);
        return reach(tensor.address(), bytes, tensor.buffer(), is_store) && (is_store || load(tensor.address(), bytes));
    };
    if (!count) return;
    if (!(whole(from, false) && ...) || !whole(to, true)) {
        const auto view = [](const auto& tensor) {
            using T = typename std::decay_t<decltype(tensor)>::PrimType;
            return View<T>{tensor, 1, static_cast<uint32_t>(most * sizeof(T) / block_bytes)};
        };
        return each_lane(Plan::of_count(count, most), view(to), f, view(from)...);
    }
    require_alignment(to.address());
    (require_alignment(from.address()), ...);
    for (uint64_t first = 0; first < count; first += most) {
        const auto lanes = static_cast<uint32_t>(std::min<uint64_t>(most, count - first));
        To result[most];
        const auto compute = [&](auto&&... values) {
            (std::memcpy(values.data(), from.address() + first * sizeof(From), lanes * sizeof(From)), ...);
            for (uint32_t lane = 0; lane < lanes; ++lane) result[lane] = f(values[lane]...);
        };
        compute(std::array<From, most>()...);
        std::memcpy(to.address() + first * sizeof(To), result, lanes * sizeof(To));
    }
    store(to.address(), count * sizeof(To));
}
}  // namespace model

namespace AscendC {

inline void SetMaskCount() { model::mask_state().is_counter = true; }
inline void SetMaskNorm() { model::mask_state().is_counter = false; }
template <class T = half>
void SetVectorMask(uint64_t high, uint64_t low) { model::mask_state().words[0] = low, model::mask_state().words[1] = high; }
template <class T = half>
void SetVectorMask(int32_t lanes) {
    const model::Mask mask = model::Mask::first(static_cast<uint64_t>(lanes), 128);
    if (model::mask_state().is_counter) SetVectorMask<T>(0, static_cast<uint64_t>(lanes));
    else SetVectorMask<T>(mask.words[1], mask.words[0]);
}
inline void ResetMask() { SetVectorMask(~uint64_t{0}, ~uint64_t{0}); }

// Each function in its two forms: so many elements side by side, and repeats with mask and strides. [Add, Adds, ...: prototypes]
#define MODEL_BINARY(Name, operation)                                                                                            \
    template <class T, bool is_set_mask = true, class M>                                                                         \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, const M& mask, uint8_t repeats,        \
              const BinaryRepeatParams& p, model::Site site = {}) {                                                              \
        model::begin(model::Pipe::vector, #Name, site);                                                                          \
        model::each_lane(model::Plan::of(is_set_mask, mask, repeats, model::lanes_of<T>),                                        \
                         model::View<T>{to, p.dstBlkStride, p.dstRepStride}, [](T x, T y) -> T { return operation; },            \
                         model::View<T>{a, p.src0BlkStride, p.src0RepStride}, model::View<T>{b, p.src1BlkStride, p.src1RepStride}); \
    }                                                                                                                            \
    template <class T>                                                                                                           \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, int32_t count, model::Site site = {}) { \
        model::begin(model::Pipe::vector, #Name, site);                                                                          \
        model::each_element(count, to, [](T x, T y) -> T { return operation; }, a, b);                                           \
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

#define MODEL_UNARY(Name, argument, operation)                                                                                   \
    template <class T, bool is_set_mask = true, class M>                                                                         \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& from argument, const M& mask, uint8_t repeats,                     \
              const UnaryRepeatParams& p, model::Site site = {}) {                                                               \
        model::begin(model::Pipe::vector, #Name, site);                                                                          \
        model::each_lane(model::Plan::of(is_set_mask, mask, repeats, model::lanes_of<T>),                                        \
                         model::View<T>{to, p.dstBlkStride, p.dstRepStride}, [=](T x) -> T { return operation; },                \
                         model::View<T>{from, p.srcBlkStride, p.srcRepStride});                                                  \
    }                                                                                                                            \
    template <class T>                                                                                                           \
    void Name(const LocalTensor<T>& to, const LocalTensor<T>& from argument, int32_t count, model::Site site = {}) {             \
        model::begin(model::Pipe::vector, #Name, site);                                                                          \
        model::each_element(count, to, [=](T x) -> T { return operation; }, from);                                               \
    }
#define MODEL_SCALAR , model::Same<T> scalar
MODEL_UNARY(Adds, MODEL_SCALAR, model::add(x, scalar))
MODEL_UNARY(Muls, MODEL_SCALAR, model::multiply(x, scalar))
MODEL_UNARY(Maxs, MODEL_SCALAR, model::larger(x, scalar))
MODEL_UNARY(Mins, MODEL_SCALAR, model::smaller(x, scalar))
MODEL_UNARY(Not, , static_cast<T>(~x))
MODEL_UNARY(Abs, , x < T(0) || std::signbit(static_cast<float>(x)) ? model::subtract(T(0), x) : x)
#undef MODEL_SCALAR
#undef MODEL_UNARY

// [Duplicate]
template <class T, bool is_set_mask = true, class M>
void Duplicate(const LocalTensor<T>& to, model::Same<T> value, const M& mask, uint8_t repeats, uint16_t block_stride, uint8_t repeat_stride,
               model::Site site = {}) {
    model::begin(model::Pipe::vector, "Duplicate", site);
    model::each_lane(model::Plan::of(is_set_mask, mask, repeats, model::lanes_of<T>), model::View<T>{to, block_stride, repeat_stride}, [=] { return value; });
}
template <class T>
void Duplicate(const LocalTensor<T>& to, model::Same<T> value, int32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Duplicate", site);
    model::each_element(count, to, [=] { return value; });
}
// [CreateVecIndex]
template <class T>
void CreateVecIndex(const LocalTensor<T>& to, model::Same<T> first, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "CreateVecIndex", site);
    model::each_element(count, to, [next = first]() mutable { return next = model::add(next, T(1)), model::subtract(next, T(1)); });
}

// [Copy(UBToUB with mask)]
template <class T, bool is_set_mask = true, class M>
void Copy(const LocalTensor<T>& to, const LocalTensor<T>& from, const M& mask, uint8_t repeats, const CopyRepeatParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Copy", site);
    model::each_lane(model::Plan::of(is_set_mask, mask, repeats, model::lanes_of<T>), model::View<T>{to, p.dstStride, p.dstRepeatSize},
                     [](T x) { return x; }, model::View<T>{from, p.srcStride, p.srcRepeatSize});
}
// [DataCopy(UBToUB, sliced)]
template <class T>
void DataCopy(const LocalTensor<T>& to, const LocalTensor<T>& from, const DataCopyParams& p, model::Site site) {
    model::begin(model::Pipe::vector, "DataCopy", site);
    const uint64_t lanes = p.blockLen * model::block_bytes / sizeof(T);
    for (uint64_t row = 0; row < p.blockCount; ++row) {
        model::each_element(lanes, to[row * (p.blockLen + p.dstStride) * model::block_bytes / sizeof(T)], [](T x) { return x; },
                            from[row * (p.blockLen + p.srcStride) * model::block_bytes / sizeof(T)]);
    }
}

// [Cast]: lanes are counted by the larger of the two types.
template <class To, class From, bool is_set_mask = true, class M>
void Cast(const LocalTensor<To>& to, const LocalTensor<From>& from, RoundMode mode, const M& mask, uint8_t repeats, const UnaryRepeatParams& p,
          model::Site site = {}) {
    model::begin(model::Pipe::vector, "Cast", site);
    constexpr uint32_t most = model::repeat_bytes / std::max(sizeof(To), sizeof(From));
    model::each_lane(model::Plan::of(is_set_mask, mask, repeats, most), model::View<To>{to, p.dstBlkStride, p.dstRepStride},
                     [=](From x) { return model::convert<To>(x, mode); }, model::View<From>{from, p.srcBlkStride, p.srcRepStride});
}
template <class To, class From>
void Cast(const LocalTensor<To>& to, const LocalTensor<From>& from, RoundMode mode, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Cast", site);
    model::each_element(count, to, [=](From x) { return model::convert<To>(x, mode); }, from);
}
inline float ToFloat(bfloat16_t value) { return value; }
}  // namespace AscendC

namespace model {

// Bits of comparisons, lowest first. A byte of them is undefined where all of its lanes are: bit by bit would be exact.
inline void write_bits(uint8_t* to, Extent buffer, const Mask& mask, const uint64_t* bits, const uint64_t* known) {
    const uint32_t bytes = (mask.count + 7) / 8;
    if (!bytes || !reach(to, bytes, buffer, true)) return;
    store(to, bytes);
    std::memcpy(to, bits, bytes);
    for (uint32_t i = 0; i < bytes; ++i) {
        if (!(known[i / 8] >> (i % 8 * 8) & 255)) forget(to + i, 1);
    }
}

// [Compare]: without a mask on A2 and A3, where the parameter has no effect; lanes without a bit become 0 on 950.
template <class Bits, class T>
void compare_lanes(const Plan& plan, const LocalTensor<Bits>& to, CMPMODE mode, const View<T>& a, const View<T>& b) {
    require_alignment(to.address());
    require_alignment(a.tensor.address());
    require_alignment(b.tensor.address());
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
        Lanes<T> x, y;
        a.read(repeat, plan[repeat], x);
        b.read(repeat, plan[repeat], y);
        uint64_t bits[4] = {}, known[4] = {};
        for (uint32_t lane = 0; lane < plan[repeat].count; ++lane) {
            if (!plan[repeat][lane]) continue;
            bits[lane / 64] |= uint64_t{compare(mode, x.value[lane], y.value[lane])} << (lane % 64);
            known[lane / 64] |= uint64_t{x.knows(lane) && y.knows(lane)} << (lane % 64);
        }
        const uint64_t tail = plan[repeat].count == lanes_of<T> ? 0 : ~uint64_t{0};
        for (uint64_t& word : known) word |= tail;
        write_bits(to.address() + repeat * lanes_of<T> / 8, to.buffer(), Mask::first(lanes_of<T>, lanes_of<T>), bits, known);
    }
}

// [Select]: the bits of modes 1 and 2 go on from repeat to repeat, those of mode 0 are used again.
template <class T, class Other>
void select_lanes(const Plan& plan, bool goes_on, const View<T>& to, const LocalTensor<uint8_t>& bits, const View<T>& a, Other other) {
    require_alignment(to.tensor.address());
    require_alignment(bits.address());
    require_alignment(a.tensor.address());
    for (uint32_t repeat = 0; repeat < plan.repeats; ++repeat) {
        const Mask& mask = plan[repeat];
        Lanes<T> x, y, result;
        Lanes<uint8_t> chosen;
        a.read(repeat, mask, x);
        other(repeat, mask, y);
        const uint32_t offset = goes_on ? repeat * lanes_of<T> / 8 : 0;
        View<uint8_t>{bits[offset]}.read(0, Mask::first((mask.count + 7) / 8, 256), chosen);
        result.all_known = x.all_known && y.all_known && chosen.all_known;
        for (uint32_t lane = 0; lane < mask.count; ++lane) {
            const bool takes_first = chosen.value[lane / 8] >> (lane % 8) & 1;
            result.value[lane] = takes_first ? x.value[lane] : y.value[lane];
            result.is_known[lane] = chosen.knows(lane / 8) && (takes_first ? x : y).knows(lane);
        }
        to.write(repeat, mask, result);
    }
}
}  // namespace model

namespace AscendC {

template <class Bits, class T>
void Compare(const LocalTensor<Bits>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Compare", site);
    if (count * sizeof(T) % model::repeat_bytes) model::report("memcheck", "Compare takes whole repeats of 256 bytes: what is left of its count is not compared");
    const uint64_t whole = count * sizeof(T) / model::repeat_bytes * model::lanes_of<T>;
    model::compare_lanes(model::Plan::of_count(whole, model::lanes_of<T>), to, mode, model::View<T>{a}, model::View<T>{b});
}
template <class Bits, class T, class M>
void Compare(const LocalTensor<Bits>& to, const LocalTensor<T>& a, const LocalTensor<T>& b, CMPMODE mode, const M& mask, uint8_t repeats,
             const BinaryRepeatParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Compare", site);
    constexpr uint64_t all = model::lanes_of<T>;
    const model::Plan plan = __CCE_AICORE__ == 310 ? model::Plan::of(mask, repeats, all) : model::Plan::of(all, repeats, all);
    model::compare_lanes(plan, to, mode, model::View<T>{a, p.src0BlkStride, p.src0RepStride}, model::View<T>{b, p.src1BlkStride, p.src1RepStride});
}

template <class T, class Bits>
void select_from(const LocalTensor<T>& to, const LocalTensor<Bits>& bits, const LocalTensor<T>& a, model::Same<T> scalar, SELMODE mode,
                 const model::Plan& plan, const BinaryRepeatParams& p) {
    model::select_lanes(plan, mode != SELMODE::VSEL_CMPMASK_SPR, model::View<T>{to, p.dstBlkStride, p.dstRepStride}, bits.template ReinterpretCast<uint8_t>(),
                        model::View<T>{a, p.src0BlkStride, p.src0RepStride},
                        [=](uint32_t, const model::Mask&, model::Lanes<T>& lanes) { std::fill(lanes.value, lanes.value + model::lanes_of<T>, scalar); });
}
template <class T, class Bits>
void select_from(const LocalTensor<T>& to, const LocalTensor<Bits>& bits, const LocalTensor<T>& a, const LocalTensor<T>& b, SELMODE mode,
                 const model::Plan& plan, const BinaryRepeatParams& p) {
    const model::View<T> second{b, p.src1BlkStride, p.src1RepStride};
    model::select_lanes(plan, mode != SELMODE::VSEL_CMPMASK_SPR, model::View<T>{to, p.dstBlkStride, p.dstRepStride}, bits.template ReinterpretCast<uint8_t>(),
                        model::View<T>{a, p.src0BlkStride, p.src0RepStride},
                        [=](uint32_t repeat, const model::Mask& mask, model::Lanes<T>& lanes) { second.read(repeat, mask, lanes); });
}
template <class T, class Bits, class Second>
void Select(const LocalTensor<T>& to, const LocalTensor<Bits>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode, uint32_t count, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Select", site);
    select_from(to, bits, a, b, mode, model::Plan::of_count(count, model::lanes_of<T>), BinaryRepeatParams());
}
template <class T, class Bits, class Second, class M>
void Select(const LocalTensor<T>& to, const LocalTensor<Bits>& bits, const LocalTensor<T>& a, const Second& b, SELMODE mode, const M& mask, uint8_t repeats,
            const BinaryRepeatParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "Select", site);
    select_from(to, bits, a, b, mode, model::Plan::of(mask, repeats, model::lanes_of<T>), p);
}

// [TransDataTo5HD]: sixteen blocks are transposed. Of b16, block i of the result takes element i of every block; of b32 two blocks of
// the result share an element; of b8 half a block is read and written. With one repeat the strides are offsets [table 3].
template <class T>
void TransDataTo5HD(uint64_t to[NCHW_CONV_ADDR_LIST_SIZE], uint64_t from[NCHW_CONV_ADDR_LIST_SIZE], const TransDataTo5HDParams& p, model::Site site = {}) {
    model::begin(model::Pipe::vector, "TransDataTo5HD", site);
    constexpr uint32_t per_block = model::block_bytes / sizeof(T);
    const auto block = [](uint64_t address, uint64_t offset) {
        model::require_alignment(reinterpret_cast<void*>(address));
        uint8_t* const place = reinterpret_cast<uint8_t*>(address + offset * model::block_bytes);
        return model::View<T>{LocalTensor<T>(place, {nullptr, reinterpret_cast<uint8_t*>(UINTPTR_MAX)})};
    };
    const model::Mask all = model::Mask::first(per_block, per_block);
    for (uint32_t repeat = 0; repeat < p.repeatTimes; ++repeat) {
        const uint64_t step = p.repeatTimes == 1 ? 1 : repeat;
        model::Lanes<T> in[16], out[16];
        for (int i = 0; i < 16; ++i) block(from[i], step * p.srcRepStride).read(0, all, in[i]);
        for (int i = 0; i < 16; ++i) {
            const uint32_t first = sizeof(T) == 1 && p.dstHighHalf ? 16 : 0, lanes = sizeof(T) == 1 ? 16 : per_block;
            model::Mask written = model::Mask::first(first + lanes, 32);
            written.words[0] &= ~uint64_t{0} << first;
            written.is_prefix = !first;
            out[i].all_known = false;
            for (uint32_t lane = 0; lane < lanes; ++lane) {
                const uint32_t source = sizeof(T) == 4 ? i % 2 * 8 + lane : lane;
                const uint32_t element = sizeof(T) == 4 ? i / 2 : i + (sizeof(T) == 1 && p.srcHighHalf ? 16 : 0);
                out[i].value[first + lane] = in[source].value[element];
                out[i].is_known[first + lane] = in[source].knows(element);
            }
            block(to[i], step * p.dstRepStride).write(0, written, out[i]);
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
