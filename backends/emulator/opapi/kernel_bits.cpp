// Pools of one cell per window on A2 and A3, whose mask holds a bit per window. The vendor's order of these bits is not
// published; this one is the emulator's own, so a mask made elsewhere means nothing here. Blocks of 32 bytes hold 16
// windows each, in the first two of them.
#include <limits>

#include "call.h"
#include "kernel.h"

namespace emulator {
namespace {

constexpr int64_t kWindowsPerBlock = 16;
constexpr int64_t kBitBlockBytes = 32;

// The one bit of a window, in the only row of its plane.
class Bit {
  public:
    Bit(const Problem& problem, void* mask, int64_t plane, int64_t window) {
        const int64_t row = (ceil_divide(problem.windows(), kWindowsPerBlock) + 1) * kBitBlockBytes;
        const int64_t in_block = window % kWindowsPerBlock;
        byte_ = static_cast<uint8_t*>(mask) + plane * row + window / kWindowsPerBlock * kBitBlockBytes + in_block / 8;
        value_ = static_cast<uint8_t>(1u << (in_block % 8));
    }
    void set() const { *byte_ |= value_; }
    void reset() const { *byte_ &= static_cast<uint8_t>(~value_); }
    bool is_set() const { return (*byte_ & value_) != 0; }

  private:
    uint8_t* byte_;
    uint8_t value_;
};

// Flat index of the window's cell; -1 where it lies in the padding.
int64_t cell_of(const Problem& problem, int64_t window) {
    const int64_t columns = problem.axes[2].out;
    const int64_t row = problem.axes[1].window(window / columns).start;
    const int64_t column = problem.axes[2].window(window % columns).start;
    const bool is_inside = row >= 0 && row < problem.axes[1].in && column >= 0 && column < problem.axes[2].in;
    return is_inside ? row * problem.axes[2].in + column : -1;
}

template <class Visit>
void for_each_window(const Problem& problem, Visit visit) {
    for (int64_t plane = 0; plane < problem.planes(); ++plane) {
        for (int64_t window = 0; window < problem.windows(); ++window) visit(plane, window);
    }
}

}  // namespace

void run_bits_forward(const Problem& problem, void* mask, const Values& input, const Values& output) {
    for_each_window(problem, [&](int64_t plane, int64_t window) {
        const Bit bit(problem, mask, plane, window);
        const int64_t cell = cell_of(problem, window), target = problem.offset(plane, window, problem.windows());
        if (cell < 0) {
            output.store(target, -std::numeric_limits<float>::infinity(), false);
            bit.reset();
        } else {
            output.copy(target, input, problem.offset(plane, cell, problem.cells()));
            bit.set();
        }
    });
}

void run_bits_backward(const Problem& problem, void* mask, const Values& gradient, const Values& result) {
    clear(result.data(), problem.planes() * problem.cells(), item_size(result.type()));
    for_each_window(problem, [&](int64_t plane, int64_t window) {
        const int64_t cell = cell_of(problem, window);
        if (cell < 0 || !Bit(problem, mask, plane, window).is_set()) return;
        result.copy(problem.offset(plane, cell, problem.cells()), gradient,
                    problem.offset(plane, window, problem.windows()));
    });
}

}  // namespace emulator
