// Numbers of Ascend C: half and bfloat16_t, how values are rounded and saturated when a Cast, a store or an atomic add
// changes their type, and the arithmetic of one element. It knows formats only: no tensor, no memory, no lanes.
// Documents: docs/zh/api of the public repository asc-devkit at 82b89a15f; [page: section] names a page of it.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace AscendC {
enum class RoundMode {
    CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD, CAST_HYBRID, UNKNOWN
};
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
template <class T, class U> using IsSameType = std::is_same<T, U>;
}  // namespace AscendC

namespace model {
using AscendC::CMPMODE;
using AscendC::RoundMode;

enum Assumption {
    vector_pipe_in_order, scalar_wait_holds_issue, registers_keep_order, infinities_saturate, integers_saturate,
    maximum_is_ieee, assumption_count
};
bool assumed(Assumption assumption);  // the switches and their sources stand in watch.cpp

template <class T> struct SameType { using type = T; };
template <class T> using Same = typename SameType<T>::type;  // a parameter from which nothing is deduced

template <class To, class From> To bits_of(From value) {
    static_assert(sizeof(To) == sizeof(From), "as many bits");
    To bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <class T> using Bits_of = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

// The bits of significand * 2^exponent in a format, rounded as the mode says. [precision_conversion: table 1]
template <int exponent_bits, int fraction_bits>
uint32_t encode(bool is_negative, uint64_t significand, int exponent, RoundMode mode) {
    constexpr int smallest = 2 - (1 << (exponent_bits - 1)) - fraction_bits;  // the exponent of a subnormal's last bit
    constexpr uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    if (!significand) return 0;
    const int unit = std::max(exponent + 63 - __builtin_clzll(significand) - fraction_bits, smallest);
    const int drop = std::min(unit - exponent, 63);
    const uint64_t kept = drop > 0 ? significand >> drop : significand << -drop;
    const uint64_t lost = drop > 0 ? significand & ((uint64_t{1} << drop) - 1) : 0;
    const uint64_t half = uint64_t{1} << std::max(drop - 1, 0);
    const bool is_down = mode == (is_negative ? RoundMode::CAST_CEIL : RoundMode::CAST_FLOOR);
    const bool is_cut = is_down || mode == RoundMode::CAST_TRUNC;
    bool up = lost > half || (lost == half && (kept & 1 || mode == RoundMode::CAST_ROUND));  // CAST_NONE is CAST_RINT
    if (mode == RoundMode::CAST_FLOOR || mode == RoundMode::CAST_CEIL) up = lost;
    if (mode == RoundMode::CAST_ODD) up = lost && !(kept & 1);
    const uint64_t bits = (static_cast<uint64_t>(unit - smallest) << fraction_bits) + kept + (up && !is_cut);
    if (bits < infinity) return static_cast<uint32_t>(bits);
    return is_cut || assumed(infinities_saturate) ? infinity - 1 : infinity;
}

// A float as one of the formats of 16 bits.
template <int exponent_bits> uint16_t narrow(float value, RoundMode mode) {
    constexpr int fraction_bits = 15 - exponent_bits;
    constexpr uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits, quiet = 1u << (fraction_bits - 1);
    const uint32_t bits = bits_of<uint32_t>(value), field = bits >> 23 & 255, fraction = bits & 0x7fffff;
    const int exponent = static_cast<int>(std::max(field, 1u)) - 150;
    uint32_t result;
    if (field != 255) {
        result = encode<exponent_bits, fraction_bits>(bits >> 31, fraction | (field ? 0x800000 : 0), exponent, mode);
    } else if (assumed(infinities_saturate)) {
        result = fraction ? 0 : infinity - 1;
    } else {
        result = infinity | (fraction ? quiet | fraction >> (23 - fraction_bits) : 0);
    }
    return static_cast<uint16_t>(result | bits >> 31 << 15);
}

inline float widen_half(uint16_t bits) {
    const uint32_t sign = uint32_t{bits} >> 15 << 31, field = bits >> 10 & 31, fraction = bits & 1023;
    if (field == 31) return bits_of<float>(sign | 0x7f800000 | fraction << 13);
    if (field) return bits_of<float>(sign | (field + 112) << 23 | fraction << 13);
    return std::copysign(static_cast<float>(fraction) * 0x1p-24f, bits_of<float>(sign));
}
}  // namespace model

// Both compute in float and round to nearest even where a result is stored, which for one operation is the correctly
// rounded result (24 >= 2 * 11 + 2 bits).
template <int exponent_bits> struct Narrow {
    uint16_t bits;
    Narrow() = default;
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
    Narrow(T value, model::RoundMode mode = model::RoundMode::CAST_RINT)
        : bits(model::narrow<exponent_bits>(static_cast<float>(value), mode)) {}
    operator float() const {
        return exponent_bits == 5 ? model::widen_half(bits) : model::bits_of<float>(uint32_t{bits} << 16);
    }
    Narrow& operator+=(float value) { return *this = Narrow(static_cast<float>(*this) + value); }
};
struct half : Narrow<5> { using Narrow<5>::Narrow; };
struct bfloat16_t : Narrow<8> {
    using Narrow<8>::Narrow;
    bfloat16_t() = default;
    explicit bfloat16_t(half value) : Narrow<8>(static_cast<float>(value)) {}
};
using float16_t = half;
using float32_t = float;
using std::max;
using std::min;

namespace model {
template <class T> constexpr bool is_narrow = std::is_same<T, half>::value || std::is_same<T, bfloat16_t>::value;
template <class T> constexpr bool is_float = std::is_floating_point<T>::value || is_narrow<T>;

// The value without its fraction. [Cast: RoundMode]
inline float whole(float value, RoundMode mode) {
    switch (mode) {
        case RoundMode::CAST_FLOOR: return std::floor(value);
        case RoundMode::CAST_CEIL: return std::ceil(value);
        case RoundMode::CAST_ROUND: return std::round(value);
        case RoundMode::CAST_TRUNC: return std::trunc(value);
        default: return std::nearbyint(value);
    }
}

// Out of range: the nearest bound, 0 for NaN; the low bits where integers do not saturate.
// [precision_conversion], [SetCtrlSpr: CTRL[59]], [Reg Cast: table 4]
template <class To, class From> To to_integer(From value) {
    constexpr To lowest = std::numeric_limits<To>::lowest(), highest = std::numeric_limits<To>::max();
    const auto exact = static_cast<long double>(value);  // 64 bits of significand
    if (exact != exact) return 0;
    if (exact >= lowest && exact <= highest) return static_cast<To>(value);
    if (assumed(integers_saturate) || std::isinf(exact)) return exact < 0 ? lowest : highest;
    return std::fabs(exact) < 0x1p63L ? static_cast<To>(static_cast<int64_t>(exact)) : 0;
}

// [Cast: data types], [precision_conversion]: every pair of the tables but those with 4 and 8 bits of float.
template <class To, class From> To convert(From value, RoundMode mode) {
    if constexpr (is_float<To> && std::is_integral<From>::value) {
        const auto wide = static_cast<uint64_t>(value);
        const uint32_t bits = encode<8, 23>(value < 0, value < 0 ? -wide : wide, 0, mode) | uint32_t{value < 0} << 31;
        if constexpr (is_narrow<To>) return To(bits_of<float>(bits), mode);  // of 16 bits: exact in a float
        else return bits_of<float>(bits);
    } else if constexpr (is_narrow<To>) {
        return To(static_cast<float>(value), mode);
    } else if constexpr (is_float<To>) {
        return std::is_same<To, From>::value ? whole(value, mode) : static_cast<To>(value);
    } else if constexpr (is_float<From>) {
        return to_integer<To>(whole(value, mode));
    } else {
        return to_integer<To>(value);
    }
}

// Arithmetic of one element. Integers wrap [SetCtrlSpr: CTRL[53]]; floats are IEEE with subnormals.
#define MODEL_ARITHMETIC(name, sign)                                                         \
    template <class T> T name(T a, T b) {                                                    \
        if constexpr (is_float<T>) return static_cast<T>(a sign b);                          \
        else return static_cast<T>(static_cast<uint64_t>(a) sign static_cast<uint64_t>(b));  \
    }
MODEL_ARITHMETIC(add, +)
MODEL_ARITHMETIC(subtract, -)
MODEL_ARITHMETIC(multiply, *)
#undef MODEL_ARITHMETIC

template <class T> T divide(T a, T b) {
    if constexpr (is_float<T>) return static_cast<T>(a / b);
    else if (b == 0) return static_cast<T>(-1);  // no trap: a lane that is not used holds anything
    else if (std::is_signed<T>::value && b == static_cast<T>(-1)) return subtract(T(0), a);
    else return static_cast<T>(a / b);
}
// A subnormal as zero. [Reg Div: algo]: unless the call asks otherwise, which is not modelled.
template <class T> T flush(T value) {
    if constexpr (!is_float<T>) return value;
    const float smallest = std::is_same<T, half>::value ? 0x1p-14f : 0x1p-126f, number = static_cast<float>(value);
    return std::fabs(number) < smallest ? static_cast<T>(std::copysign(0.0f, number)) : value;
}

// NaN where either is, and -0.0 below +0.0: no document says so of Max and Min. [assumption maximum_is_ieee]
template <bool is_maximum, class T> T extreme(T a, T b) {
    if (is_float<T> && assumed(maximum_is_ieee)) {
        if (a != a || b != b) return a != a ? a : b;
        if (a == b) return std::signbit(static_cast<float>(a)) == is_maximum ? b : a;
    }
    return (is_maximum ? a < b : b < a) ? b : a;
}

// Whether a value takes the place of the best before it: of equal ones the first stays, and the first NaN.
template <bool is_maximum, class T> bool is_better(T value, T best) {
    if (value != value && assumed(maximum_is_ieee)) return best == best;
    return is_maximum ? value > best : value < best;
}

// [Compare: function]. NaN is unordered, as in IEEE 754.
template <class T> bool compare(CMPMODE mode, T a, T b) {
    switch (mode) {
        case CMPMODE::LT: return a < b;
        case CMPMODE::GT: return a > b;
        case CMPMODE::EQ: return a == b;
        case CMPMODE::LE: return a <= b;
        case CMPMODE::GE: return a >= b;
        default: return a != b;
    }
}
}  // namespace model
