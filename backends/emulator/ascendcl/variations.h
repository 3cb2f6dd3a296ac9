// Ways in which another library of the same interface may be built. Orders of addition and a declared accumulation are
// honest: a suite must accept them. Roundings, flushes and other rules for ties and NaN are there to be recognised.
#pragma once

namespace emulator {

enum class Order { kOfRoute, kForward, kReverse, kRandom, kPairwise };
enum class Accumulation { kOfRoute, kAcc32, kNative };
enum class Narrowing { kEven, kAway, kTruncate, kUp, kDown };
enum class Ties { kFirst, kLast };
enum class Nans { kLast, kFirst, kIgnore };

struct Variations {
    Order order = Order::kOfRoute;  // in which gradients meet in a cell
    Accumulation accumulation = Accumulation::kOfRoute;
    Narrowing narrowing = Narrowing::kEven;  // of float32 sums to the half precisions
    bool flushes_subnormals = false;         // of the half precisions
    bool saturates = false;                  // where a half precision sum overflows
    Ties ties = Ties::kFirst;                // which of equal maxima a forward chooses
    Nans nans = Nans::kLast;                 // which NaN it chooses

    bool changes_sums() const { return order != Order::kOfRoute || accumulation != Accumulation::kOfRoute; }
    bool changes_narrowing() const { return narrowing != Narrowing::kEven || flushes_subnormals || saturates; }
};

// Chosen by environment variables when the library is loaded, see the package's docstring; an unknown word aborts.
extern const Variations variations;

}  // namespace emulator
