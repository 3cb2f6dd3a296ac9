// The element types: reading them as float32, rounding float32 into them, and adding gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../ascendcl/abi.h"
#include "../ascendcl/defects.h"
#include "../ascendcl/variations.h"

namespace emulator {

template <class To, class From>
To bits_as(From value) {
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(&result, &value, sizeof(To));
    return result;
}

inline float widen_float16(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    const uint32_t exponent = (half >> 10) & 0x1Fu;
    const uint32_t fraction = half & 0x3FFu;
    if (exponent == 0x1F) return bits_as<float>(sign | 0x7F800000u | (fraction << 13));
    if (exponent == 0) return bits_as<float>(sign | bits_as<uint32_t>(static_cast<float>(fraction) * 0x1p-24f));
    return bits_as<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

inline float widen_bfloat16(uint16_t value) { return bits_as<float>(static_cast<uint32_t>(value) << 16); }

// `value` on the grid of a half precision format, in the direction that is asked for: a format of `bits` bits of
// precision whose least normal number has the exponent `least`. What overflows does so afterwards.
inline float on_grid(float value, int bits, int least) {
    if (!std::isfinite(value) || value == 0.0f) return value;
    const int exponent = std::max(std::ilogb(value), least);
    if (variations.flushes_subnormals && std::ilogb(value) < least) return std::copysign(0.0f, value);
    const double quotient = std::ldexp(static_cast<double>(value), bits - 1 - exponent);
    double whole = std::nearbyint(quotient);
    switch (variations.narrowing) {
        case Narrowing::kEven: break;
        case Narrowing::kAway: whole = std::round(quotient); break;
        case Narrowing::kTruncate: whole = std::trunc(quotient); break;
        case Narrowing::kUp: whole = std::ceil(quotient); break;
        case Narrowing::kDown: whole = std::floor(quotient); break;
    }
    return static_cast<float>(std::ldexp(whole, exponent - bits + 1));
}

// To nearest, ties to even. A finite value beyond the range becomes infinite, or the largest value with `saturate`.
inline uint16_t narrow_float16(float value, bool saturate) {
    if (variations.changes_narrowing()) {
        value = on_grid(value, 11, -14);
        saturate |= variations.saturates;
    }
    const auto bits = bits_as<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return sign | 0x7E00u;
    if (magnitude >= 0x477FF000u) {  // 65520 and above
        const bool clamps = seeded(Defect::infinity_saturated) || (saturate && magnitude != 0x7F800000u);
        return sign | (clamps ? 0x7BFFu : 0x7C00u);
    }
    if (seeded(Defect::float16_subnormals_flushed) && magnitude < 0x38800000u) return sign;
    if (magnitude < 0x38800000u) {  // below 2^-14: the addition to 0.5 rounds at the subnormals' spacing
        const float shifted = bits_as<float>(magnitude) + 0.5f;
        return sign | static_cast<uint16_t>(bits_as<uint32_t>(shifted) - 0x3F000000u);
    }
    const uint32_t upwards = seeded(Defect::float16_half_away) ? 1u : (magnitude >> 13) & 1u;
    magnitude += 0xFFFu + upwards - (112u << 23);
    return sign | static_cast<uint16_t>(magnitude >> 13);
}

inline uint16_t narrow_bfloat16(float value, bool saturate) {
    if (seeded(Defect::bfloat16_through_float16)) value = widen_float16(narrow_float16(value, false));
    if (variations.changes_narrowing()) {
        value = on_grid(value, 8, -126);
        saturate |= variations.saturates;
    }
    const auto bits = bits_as<uint32_t>(value);
    if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
    if (seeded(Defect::bfloat16_truncated)) return static_cast<uint16_t>(bits >> 16);
    const auto rounded = static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
    const bool overflowed = (rounded & 0x7FFFu) == 0x7F80u && std::isfinite(value);
    return saturate && overflowed ? rounded - 1 : rounded;
}

inline float rounded_to(aclDataType type, float value, bool saturate = false) {
    if (type == ACL_FLOAT16) return widen_float16(narrow_float16(value, saturate));
    if (type == ACL_BF16) return widen_bfloat16(narrow_bfloat16(value, saturate));
    return value;
}

// One addition to a float32 partial sum of gradients that belong into a tensor of `type`.
inline void accumulate(float& sum, float gradient, aclDataType type) {
    if (seeded(Defect::nan_dropped) && std::isnan(gradient)) return;
    if (seeded(Defect::float32_as_tf32)) gradient = bits_as<float>(bits_as<uint32_t>(gradient) & ~0x1FFFu);
    const bool is_new_nan = std::isinf(sum) && gradient == -sum;
    sum = seeded(Defect::assign_not_accumulate) ? gradient : sum + gradient;
    if (seeded(Defect::opposite_infinities_cancel) && is_new_nan) sum = 0.0f;
    if (seeded(Defect::half_accumulator)) sum = rounded_to(type, sum);
}

// A dense array of floating point elements.
class Values {
  public:
    Values() = default;
    Values(void* data, aclDataType type) : data_(data), type_(type) {}

    aclDataType type() const { return type_; }
    void* data() const { return data_; }

    float load(int64_t i) const {
        if (type_ == ACL_FLOAT) return static_cast<const float*>(data_)[i];
        const uint16_t bits = static_cast<const uint16_t*>(data_)[i];
        return type_ == ACL_FLOAT16 ? widen_float16(bits) : widen_bfloat16(bits);
    }

    double load_double(int64_t i) const {
        return type_ == ACL_DOUBLE ? static_cast<const double*>(data_)[i] : static_cast<double>(load(i));
    }

    void store(int64_t i, float value, bool saturate) const {
        if (type_ == ACL_FLOAT) {
            static_cast<float*>(data_)[i] = value;
        } else {
            static_cast<uint16_t*>(data_)[i] =
                type_ == ACL_FLOAT16 ? narrow_float16(value, saturate) : narrow_bfloat16(value, saturate);
        }
    }

    // Moves an element without looking at it: every bit survives, those of a NaN too.
    void copy(int64_t i, const Values& from, int64_t j) const {
        const size_t size = type_ == ACL_DOUBLE ? 8 : type_ == ACL_FLOAT ? 4 : 2;
        std::memcpy(static_cast<char*>(data_) + static_cast<size_t>(i) * size,
                    static_cast<const char*>(from.data_) + static_cast<size_t>(j) * size, size);
    }

  private:
    void* data_ = nullptr;
    aclDataType type_ = ACL_FLOAT;
};

// A dense array of indices, int32 or int64.
class Indices {
  public:
    Indices() = default;
    Indices(void* data, aclDataType type) : data_(data), wide_(type == ACL_INT64) {}

    int64_t load(int64_t i) const {
        if (seeded(Defect::int64_read_as_int32)) return static_cast<const int32_t*>(data_)[i];
        const int64_t index = wide_ ? static_cast<const int64_t*>(data_)[i] : static_cast<const int32_t*>(data_)[i];
        if (seeded(Defect::uint16_plane_index)) return static_cast<uint16_t>(index);
        return seeded(Defect::float32_plane_index) ? static_cast<int64_t>(static_cast<float>(index)) : index;
    }

    void store(int64_t i, int64_t index) const {
        if (wide_) {
            static_cast<int64_t*>(data_)[i] = index;
        } else {
            static_cast<int32_t*>(data_)[i] = static_cast<int32_t>(index);
        }
    }

  private:
    void* data_ = nullptr;
    bool wide_ = false;
};

}  // namespace emulator
