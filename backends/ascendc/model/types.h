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
#include <utility>

namespace AscendC {
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD, CAST_HYBRID, UNKNOWN };
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
}  // namespace AscendC

namespace model {
using AscendC::CMPMODE;
using AscendC::RoundMode;

bool assumed(int assumption);  // whether the switch of that number is on; the table is in runtime.cpp
enum Assumption {
    vector_pipe_in_order, scalar_accesses_synced, scalar_wait_holds_issue, sync_all_waits_for_all_pipes,
    registers_keep_order, infinities_saturate, integers_saturate, maximum_is_ieee, division_flushes_subnormals, assumptions
};

template <class To, class From>
To bits_of(From value) {
    static_assert(sizeof(To) == sizeof(From), "the bits of a value fit");
    To bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <class T>
struct SameType { using type = T; };
template <class T>
using Same = typename SameType<T>::type;  // a parameter from which nothing is deduced

// Whether the kept part grows by one, given what is dropped of it. [precision_conversion: table 1]
inline bool rounds_up(RoundMode mode, bool negative, bool odd, uint64_t dropped, uint64_t half) {
    switch (mode) {
        case RoundMode::CAST_FLOOR: return negative && dropped;
        case RoundMode::CAST_CEIL: return !negative && dropped;
        case RoundMode::CAST_ROUND: return dropped >= half;
        case RoundMode::CAST_TRUNC: return false;
        case RoundMode::CAST_ODD: return dropped && !odd;
        default: return dropped > half || (dropped == half && odd);  // CAST_NONE is CAST_RINT where a value is lost
    }
}

// The float as a 16-bit format with that many bits of exponent and fraction.
template <int exponent_bits>
uint16_t narrow(float value, RoundMode mode) {
    constexpr int fraction_bits = 15 - exponent_bits, smallest = 2 - (1 << (exponent_bits - 1));
    constexpr uint32_t infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    const uint32_t bits = bits_of<uint32_t>(value), magnitude = bits & 0x7fffffff, sign = bits >> 31;
    const uint32_t largest = assumed(infinities_saturate) ? infinity - 1 : infinity;
    uint32_t result;
    if (magnitude > 0x7f800000) {
        result = assumed(infinities_saturate) ? 0 : infinity | 1u << (fraction_bits - 1) | (magnitude & 0x7fffff) >> (23 - fraction_bits);
    } else if (magnitude == 0x7f800000) {
        result = largest;
    } else {
        const int field = static_cast<int>(magnitude >> 23), exponent = (field ? field : 1) - 127;
        const uint64_t significand = (field ? 0x800000u : 0u) | (magnitude & 0x7fffff);
        const int unit = std::max(exponent, smallest), drop = std::min(unit - exponent + 23 - fraction_bits, 40);
        const uint64_t kept = significand >> drop, dropped = significand & ((uint64_t{1} << drop) - 1);
        const bool up = rounds_up(mode, sign, kept & 1, dropped, uint64_t{1} << (drop - 1));
        const uint32_t encoded = (static_cast<uint32_t>(unit - smallest) << fraction_bits) + static_cast<uint32_t>(kept + up);
        const bool cut = mode == RoundMode::CAST_TRUNC || mode == (sign ? RoundMode::CAST_CEIL : RoundMode::CAST_FLOOR);
        result = encoded < infinity ? encoded : cut ? infinity - 1 : largest;
    }
    return static_cast<uint16_t>(result | sign << 15);
}

inline float widen_half(uint16_t bits) {
    const uint32_t sign = uint32_t{bits} >> 15 << 31, field = bits >> 10 & 31, fraction = bits & 1023;
    if (field == 31) return bits_of<float>(sign | 0x7f800000 | fraction << 13);
    if (field) return bits_of<float>(sign | (field + 112) << 23 | fraction << 13);
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
}
}  // namespace model

// Both are arithmetic types of the compiler: an expression of them is computed in float, and rounded to nearest even
// where it is stored, which for one operation is the correctly rounded result (24 >= 2 * 11 + 2 bits).
struct half {
    uint16_t bits;
    half() = default;
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
    half(T value) : bits(model::narrow<5>(static_cast<float>(value), AscendC::RoundMode::CAST_RINT)) {}
    operator float() const { return model::widen_half(bits); }
};
struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
    bfloat16_t(T value) : bits(model::narrow<8>(static_cast<float>(value), AscendC::RoundMode::CAST_RINT)) {}
    explicit bfloat16_t(half value) : bfloat16_t(static_cast<float>(value)) {}
    operator float() const { return model::bits_of<float>(uint32_t{bits} << 16); }
};
template <class T, class = std::enable_if_t<std::is_same<T, half>::value || std::is_same<T, bfloat16_t>::value>>
T& operator+=(T& total, float value) { return total = T(static_cast<float>(total) + value); }

namespace model {
template <class T>
constexpr bool is_narrow = std::is_same<T, half>::value || std::is_same<T, bfloat16_t>::value;
template <class T>
constexpr bool is_float = std::is_floating_point<T>::value || is_narrow<T>;

// A value that has no fraction left. [Cast: RoundMode]
template <class T>
T whole(T value, RoundMode mode) {
    switch (mode) {
        case RoundMode::CAST_FLOOR: return std::floor(value);
        case RoundMode::CAST_CEIL: return std::ceil(value);
        case RoundMode::CAST_ROUND: return std::round(value);
        case RoundMode::CAST_TRUNC: return std::trunc(value);
        default: return std::nearbyint(value);
    }
}

// Out of range: the nearest bound, and 0 for NaN; truncated to the low bits where integers do not saturate.
// [precision_conversion], [SetCtrlSpr: CTRL[59]], [Reg Cast: table 4]
template <class To, class From>
To to_integer(From value) {
    constexpr To lowest = std::numeric_limits<To>::lowest(), highest = std::numeric_limits<To>::max();
    if constexpr (std::is_floating_point<From>::value) {
        if (value != value) return 0;
        const bool is_low = value <= static_cast<From>(lowest), is_high = value >= static_cast<From>(highest);
        if (!is_low && !is_high) return static_cast<To>(value);
        if (assumed(integers_saturate) || std::isinf(value)) return is_low ? lowest : highest;
        return static_cast<To>(std::fabs(value) < 0x1p63 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : 0);
    } else if (assumed(integers_saturate)) {
        if (std::is_signed<From>::value && value < 0) {
            return std::is_unsigned<To>::value || static_cast<int64_t>(value) < static_cast<int64_t>(lowest) ? lowest : static_cast<To>(value);
        }
        return static_cast<uint64_t>(value) > static_cast<uint64_t>(highest) ? highest : static_cast<To>(value);
    }
    return static_cast<To>(value);
}

// The integer as the float that the mode wants: the nearest one, or its neighbour.
template <class From>
float to_float(From value, RoundMode mode) {
    const float nearest = static_cast<float>(value);
    const auto exact = static_cast<long double>(value), is = static_cast<long double>(nearest);
    const bool toward_zero = mode == RoundMode::CAST_TRUNC;
    if (is < exact && (mode == RoundMode::CAST_CEIL || (toward_zero && exact < 0))) return std::nextafter(nearest, INFINITY);
    if (is > exact && (mode == RoundMode::CAST_FLOOR || (toward_zero && exact > 0))) return std::nextafter(nearest, -INFINITY);
    const float outer = std::nextafter(nearest, exact < 0 ? -INFINITY : INFINITY);
    const bool is_tie = mode == RoundMode::CAST_ROUND && is != exact && exact - is == static_cast<long double>(outer) - exact;
    return is_tie ? outer : nearest;
}

// [Cast: data types], [precision_conversion]: every pair of the tables but those with 4 and 8 bits of float.
template <class To, class From>
To convert(From value, RoundMode mode) {
    if constexpr (std::is_same<To, half>::value || std::is_same<To, bfloat16_t>::value) {
        To result;
        result.bits = narrow<std::is_same<To, half>::value ? 5 : 8>(static_cast<float>(value), mode);
        return result;
    } else if constexpr (is_float<To>) {
        if constexpr (std::is_integral<From>::value) return static_cast<To>(to_float(value, mode));
        else if constexpr (std::is_same<To, From>::value) return whole(value, mode);
        else return static_cast<To>(value);
    } else if constexpr (is_float<From>) {
        using Wide = std::conditional_t<std::is_same<From, double>::value, double, float>;
        return to_integer<To>(whole(static_cast<Wide>(value), mode));
    } else {
        return to_integer<To>(value);
    }
}

// Arithmetic of one element. Integers wrap [SetCtrlSpr: CTRL[53]]; floats are IEEE with subnormals.
template <class T, class Operation>
T arithmetic(T a, T b, Operation operation) {
    if constexpr (std::is_integral<T>::value) return static_cast<T>(operation(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
    else return static_cast<T>(operation(a, b));
}
template <class T> T add(T a, T b) { return arithmetic(a, b, [](auto x, auto y) { return x + y; }); }
template <class T> T subtract(T a, T b) { return arithmetic(a, b, [](auto x, auto y) { return x - y; }); }
template <class T> T multiply(T a, T b) { return arithmetic(a, b, [](auto x, auto y) { return x * y; }); }

template <class T>
T divide(T a, T b) {
    if constexpr (std::is_integral<T>::value) {
        if (b == 0) return static_cast<T>(-1);  // lanes that no mask selects hold anything: no trap
        if (std::is_signed<T>::value && b == static_cast<T>(-1)) return subtract(T(0), a);
        return static_cast<T>(a / b);
    } else {
        return static_cast<T>(a / b);
    }
}

// NaN where either is, and -0.0 below +0.0: no document says so of Max and Min. [assumption maximum_is_ieee]
template <class T>
T larger(T a, T b) {
    if constexpr (!is_float<T>) return a < b ? b : a;
    if (assumed(maximum_is_ieee)) {
        if (a != a || b != b) return a != a ? a : b;
        if (a == b) return std::signbit(static_cast<float>(a)) ? b : a;
    }
    return a < b ? b : a;
}
template <class T>
T smaller(T a, T b) {
    if constexpr (!is_float<T>) return b < a ? b : a;
    if (assumed(maximum_is_ieee)) {
        if (a != a || b != b) return a != a ? a : b;
        if (a == b) return std::signbit(static_cast<float>(a)) ? a : b;
    }
    return b < a ? b : a;
}

// [Compare: function]. NaN is unordered, as in IEEE 754.
template <class T>
bool compare(CMPMODE mode, T a, T b) {
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
