// Copies, fills and casts, which clients make beside the operators: aclnnInplaceCopy, aclnnInplaceZero, aclnnCast.
//
// No seeded defect and no variation changes them, so that what a client finds is of the operators.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "../ascendcl/errors.h"
#include "../nnopbase/executor.h"
#include "../opapi/view.h"

namespace emulator {
namespace {

// A half precision format: bits of its fraction, and the bias of its exponent.
struct Half {
    int fraction;
    int bias;
};
constexpr Half kFloat16{10, 15}, kBfloat16{7, 127};

double widened(uint16_t bits, Half format) {
    const int exponent = (bits & 0x7FFF) >> format.fraction;
    const int fraction = bits & ((1 << format.fraction) - 1);
    const int implied = exponent == 0 ? 0 : 1 << format.fraction;
    double magnitude = std::ldexp(implied + fraction, std::max(exponent, 1) - format.bias - format.fraction);
    if (exponent == 2 * format.bias + 1)
        magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// To nearest, ties to even.
uint16_t narrowed(double value, Half format) {
    const int sign = std::signbit(value) ? 0x8000 : 0;
    const int infinity = (2 * format.bias + 1) << format.fraction;
    if (std::isnan(value)) return static_cast<uint16_t>(infinity | 1 << (format.fraction - 1));
    if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
    const double magnitude = std::fabs(value);
    const int least = 1 - format.bias;
    const int exponent = magnitude == 0 ? least : std::max(std::ilogb(magnitude), least);
    if (exponent > format.bias) return static_cast<uint16_t>(sign | infinity);
    const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.fraction - exponent)));
    // The leading bit of `steps` counts as one in the exponent, which a subnormal number lacks.
    return static_cast<uint16_t>(sign | (steps + ((exponent + format.bias - 1) << format.fraction)));
}

// A value of any type, in the one of two that holds it.
struct Number {
    bool is_whole;
    int64_t whole;
    double real;
};

template <class Value>
Value read(const void* from) {
    Value value;
    std::memcpy(&value, from, sizeof(Value));
    return value;
}

Number load(const void* from, aclDataType type) {
    const auto whole = [](int64_t value) { return Number{true, value, 0}; };
    const auto real = [](double value) { return Number{false, 0, value}; };
    switch (type) {
        case ACL_FLOAT: return real(read<float>(from));
        case ACL_DOUBLE: return real(read<double>(from));
        case ACL_FLOAT16: return real(widened(read<uint16_t>(from), kFloat16));
        case ACL_BF16: return real(widened(read<uint16_t>(from), kBfloat16));
        case ACL_INT8: return whole(read<int8_t>(from));
        case ACL_UINT8:
        case ACL_BOOL: return whole(read<uint8_t>(from));
        case ACL_INT16: return whole(read<int16_t>(from));
        case ACL_INT32: return whole(read<int32_t>(from));
        default: return whole(read<int64_t>(from));
    }
}

template <class Value>
void write(void* to, Value value) {
    std::memcpy(to, &value, sizeof(Value));
}

void store(void* to, aclDataType type, const Number& number) {
    const double real = number.is_whole ? static_cast<double>(number.whole) : number.real;
    const bool fits = number.is_whole || std::fabs(real) < 0x1p63;
    const int64_t whole = number.is_whole ? number.whole : fits ? static_cast<int64_t>(real) : INT64_MIN;
    switch (type) {
        case ACL_FLOAT: return write(to, static_cast<float>(real));
        case ACL_DOUBLE: return write(to, real);
        case ACL_FLOAT16: return write(to, narrowed(real, kFloat16));
        case ACL_BF16: return write(to, narrowed(real, kBfloat16));
        case ACL_BOOL: return write<uint8_t>(to, number.is_whole ? whole != 0 : real != 0);
        case ACL_INT8:
        case ACL_UINT8: return write(to, static_cast<int8_t>(whole));
        case ACL_INT16: return write(to, static_cast<int16_t>(whole));
        case ACL_INT32: return write(to, static_cast<int32_t>(whole));
        default: return write(to, whole);
    }
}

bool is_castable(aclDataType type) {
    constexpr aclDataType kTypes[] = {ACL_FLOAT, ACL_DOUBLE, ACL_FLOAT16, ACL_BF16,  ACL_INT8,
                                      ACL_UINT8, ACL_BOOL,   ACL_INT16,   ACL_INT32, ACL_INT64};
    return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

void copy(const View& source, aclDataType from, const void* data, const View& target, aclDataType to, void* result) {
    const auto count = static_cast<size_t>(target.count());
    const char* values = static_cast<const char*>(data) + source.first_byte();
    char* const results = static_cast<char*>(result) + target.first_byte();
    std::vector<char> gathered, cast;
    if (!source.is_dense() || !target.is_dense() || from != to) {
        gathered.resize(count * source.item);
        gather(source, data, gathered.data());
        values = gathered.data();
    }
    if (from != to) {
        cast.resize(count * target.item);
        for (size_t i = 0; i < count; ++i)
            store(&cast[i * target.item], to, load(values + i * source.item, from));
        values = cast.data();
    }
    if (target.is_dense()) {
        std::memmove(results, values, count * target.item);
    } else {
        scatter(target, values, result);
    }
}

// Fills the last tensor of a call with the first, or with zeros where there is only one.
class Copy : public Plan {
  public:
    Copy(const View& source, aclDataType from, const View& target, aclDataType to)
        : source_(source), target_(target), from_(from), to_(to) {}

    Stream::Task bind(std::vector<void*> addresses, void*) const override {
        return [plan = *this, addresses = std::move(addresses)] {
            if (plan.target_.count() == 0) return status::kSuccess;
            plan.run(addresses.front(), addresses.back(), addresses.size() == 1);
            return status::kSuccess;
        };
    }

  private:
    void run(const void* data, void* result, bool zeroes) const {
        const std::vector<char> zero(source_.item, 0);
        if (zeroes && target_.is_dense()) {
            std::memset(static_cast<char*>(result) + target_.first_byte(), 0, target_.count() * target_.item);
        } else {
            copy(source_, from_, zeroes ? zero.data() : data, target_, to_, result);
        }
    }

    View source_, target_;
    aclDataType from_, to_;
};

int refuse(const char* api, int code, const char* why) {
    report(text("E", code, ": ", api, ": ", why));
    return code;
}

// Spreads `source` over `shape`; false where that is impossible.
bool broadcast(View* source, const std::vector<int64_t>& shape) {
    if (source->shape.size() > shape.size()) return false;
    const size_t missing = shape.size() - source->shape.size();
    source->shape.insert(source->shape.begin(), missing, 1);
    source->strides.insert(source->strides.begin(), missing, 0);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (source->shape[axis] == shape[axis]) continue;
        if (source->shape[axis] != 1) return false;
        source->shape[axis] = shape[axis];
        source->strides[axis] = 0;
    }
    return true;
}

int plan(const char* api, const std::vector<const aclTensor*>& tensors, uint64_t* size, aclOpExecutor** executor) {
    for (const aclTensor* tensor : tensors) {
        if (tensor == nullptr) return refuse(api, status::kNullPointer, "a tensor is null");
    }
    if (size == nullptr || executor == nullptr) return refuse(api, status::kNullPointer, "a result pointer is null");
    const aclTensor& source = *tensors.front();
    const aclTensor& target = *tensors.back();
    for (const aclTensor* tensor : tensors) {
        const bool is_only_moved = source.dtype == target.dtype;
        if (!is_only_moved && !is_castable(tensor->dtype))
            return refuse(api, status::kParamInvalid, "a dtype that is not emulated");
    }
    View values(source);
    if (tensors.size() == 1) {
        values.strides.assign(values.shape.size(), 0);
        values.offset = 0;
    }
    if (!broadcast(&values, target.shape)) return refuse(api, status::kParamInvalid, "the shapes do not agree");
    auto made = std::make_shared<Copy>(values, source.dtype, View(target), target.dtype);
    made->route = "copy";
    *size = 0;
    *executor = create_executor(api, std::move(made), tensors, tensors.size() - 1, "", false);
    return status::kSuccess;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" aclnnStatus aclnnInplaceCopyGetWorkspaceSize(aclTensor* self, const aclTensor* source, uint64_t* size,
                                                        aclOpExecutor** executor) {
    return plan("aclnnInplaceCopy", {source, self}, size, executor);
}

extern "C" aclnnStatus aclnnInplaceCopy(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
    return run_executor(workspace, size, executor, stream);
}

extern "C" aclnnStatus aclnnInplaceZeroGetWorkspaceSize(aclTensor* self, uint64_t* size, aclOpExecutor** executor) {
    return plan("aclnnInplaceZero", {self}, size, executor);
}

extern "C" aclnnStatus aclnnInplaceZero(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
    return run_executor(workspace, size, executor, stream);
}

extern "C" aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor* self, aclDataType type, aclTensor* result,
                                                 uint64_t* size, aclOpExecutor** executor) {
    if (result != nullptr && result->dtype != type)
        return refuse("aclnnCast", status::kParamInvalid, "the result has another dtype");
    return plan("aclnnCast", {self, result}, size, executor);
}

extern "C" aclnnStatus aclnnCast(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
    return run_executor(workspace, size, executor, stream);
}
