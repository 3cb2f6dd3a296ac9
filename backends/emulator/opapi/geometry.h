// Windows along one axis, and the five-dimensional problem that every API of the family comes down to.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "../ascendcl/abi.h"
#include "../ascendcl/defects.h"

namespace emulator {

constexpr int kAxes = 3;  // D, H, W; a 2-D pool has a D axis of one

inline int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
inline int64_t ceil_divide(int64_t a, int64_t b) { return -floor_divide(-a, b); }
inline int64_t align(int64_t value, int64_t step) { return ceil_divide(value, step) * step; }

// Output length of a windowed pool, which may come out as zero or negative. In ceil mode a last window that would
// start in the trailing padding does not count (size rule of the operator library, the same as torch's).
inline int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                           bool ceil_mode) {
    const int64_t span = size + 2 * padding - dilation * (kernel - 1) - 1 + (ceil_mode ? stride - 1 : 0);
    const int64_t windows = floor_divide(span, stride) + 1;
    const bool clips = ceil_mode && !seeded(Defect::ceil_clip_missing);
    return clips && (windows - 1) * stride >= size + padding ? windows - 1 : windows;
}

struct Range {
    int64_t begin = 0;
    int64_t end = 0;

    int64_t size() const { return end - begin; }
    bool contains(int64_t value) const { return begin <= value && value < end; }
};

// The coordinates that one window looks at: start, start + step, ... `taps` of them, some perhaps outside the input.
struct Window {
    int64_t start;
    int64_t step;
    int64_t taps;

    int64_t end() const { return start + (taps - 1) * step + 1; }
    bool covers(int64_t coordinate) const {
        const int64_t distance = coordinate - start;
        return distance >= 0 && distance % step == 0 && distance / step < taps;
    }
};

struct Axis {
    int64_t in = 1;
    int64_t out = 1;
    int64_t kernel = 1;
    int64_t stride = 1;
    int64_t padding = 0;
    int64_t dilation = 1;
    bool adaptive = false;

    Window window(int64_t output) const {
        if (!adaptive) {
            const int64_t taps = seeded(Defect::kernel_field_wraps) ? kernel & 1023 : kernel;
            return {output * stride - padding, dilation, taps};
        }
        if (seeded(Defect::adaptive_window_in_float)) return window_in_float(output);
        if (seeded(Defect::adaptive_windows_of_one_size)) return {output * (in / out), 1, in - (out - 1) * (in / out)};
        const int64_t start = scaled(output, in, out);
        return {start, 1, ceil_scaled(output + 1, in, out) - start};
    }

    // From the first to the last tap of a windowed pool.
    int64_t dilated_kernel() const { return dilation * (kernel - 1) + 1; }

    // Whether two windows can look at the same coordinate.
    bool overlaps() const {
        const int64_t reach = seeded(Defect::dilation_blind_overlap) ? kernel : dilated_kernel();
        return adaptive ? in % out != 0 : reach > stride;
    }

    // Windows that many apart never share a coordinate.
    int64_t phases() const {
        const int64_t reach = seeded(Defect::dilation_blind_phases) ? kernel : dilated_kernel();
        if (seeded(Defect::phases_rounded_down)) return std::max<int64_t>(1, reach / stride);
        return ceil_divide(reach, stride);
    }

    // Windows that a kernel visits: all of them.
    int64_t visited() const {
        const bool overhangs = !adaptive && (out - 1) * stride - padding + dilated_kernel() > in + padding;
        if (seeded(Defect::int16_output_column)) return std::min<int64_t>(out, std::numeric_limits<int16_t>::max());
        return seeded(Defect::last_ceil_window_dropped) && overhangs ? out - 1 : out;
    }

    // Windows that may look at a coordinate in `cells`.
    Range windows_over(Range cells) const {
        Range windows;
        if (adaptive) {
            windows = {scaled(cells.begin, out, in), ceil_scaled(cells.end, out, in)};
        } else {
            const int64_t reach = seeded(Defect::dilation_blind_range) ? kernel : dilated_kernel();
            windows.begin = ceil_divide(cells.begin + padding - (reach - 1), stride);
            windows.end = floor_divide(cells.end - 1 + padding, stride) + 1;
        }
        return {std::max<int64_t>(windows.begin, 0), std::min(windows.end, visited())};
    }

    // Coordinates from the first to the last tap of these windows, within the input.
    Range cells_under(Range windows) const {
        const int64_t last = window(windows.end - 1).end();
        return {std::max<int64_t>(window(windows.begin).start, 0), std::min(last, in)};
    }

    // Length of the longest window. An adaptive one reaches one cell further than in / out on a side that cuts a
    // cell; both sides do where the remainder, in lowest terms, is more than one.
    int64_t largest_window() const {
        if (!adaptive) return dilated_kernel();
        const int64_t remainder = in % out / std::gcd(in, out);
        return in / out + std::min<int64_t>(remainder, 2);
    }

  private:
    Window window_in_float(int64_t output) const {
        const float ratio = static_cast<float>(in) / static_cast<float>(out);
        const auto start = static_cast<int64_t>(std::floor(static_cast<float>(output) * ratio));
        const auto end = static_cast<int64_t>(std::ceil(static_cast<float>(output + 1) * ratio));
        return {start, 1, end - start};
    }

    // floor and ceil of a * b / c; 128 bits, because a large plane times a large output passes 2^63.
    static int64_t scaled(int64_t a, int64_t b, int64_t c) {
        return static_cast<int64_t>(static_cast<__int128>(a) * b / c);
    }
    static int64_t ceil_scaled(int64_t a, int64_t b, int64_t c) {
        return static_cast<int64_t>((static_cast<__int128>(a) * b + c - 1) / c);
    }
};

struct Problem {
    std::array<Axis, kAxes> axes;
    int64_t batch = 1;
    int64_t channels = 1;
    int spatial_rank = 2;
    bool channels_last = false;
    aclDataType value = ACL_FLOAT;
    aclDataType index = ACL_INT32;
    bool deterministic = false;

    int64_t planes() const { return batch * channels; }
    int64_t cells() const { return axes[0].in * axes[1].in * axes[2].in; }
    int64_t windows() const { return axes[0].out * axes[1].out * axes[2].out; }
    bool overlaps() const { return axes[0].overlaps() || axes[1].overlaps() || axes[2].overlaps(); }
    bool is_half() const { return value != ACL_FLOAT; }
    bool is_dilated() const {
        return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.dilation != 1; });
    }
    bool is_padded() const {
        return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.padding > 0; });
    }

    // Where element `position` of a plane lies in a dense tensor whose planes have `size` elements.
    int64_t offset(int64_t plane, int64_t position, int64_t size) const {
        if (!channels_last) return plane * size + position;
        return (plane / channels * size + position) * channels + plane % channels;
    }
};

}  // namespace emulator
