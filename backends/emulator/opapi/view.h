// Strided views over memory, and copies between them and dense tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "../nnopbase/tensor.h"

namespace emulator {

// A tensor's view, detached from the tensor: phase two must not look at what the caller may have destroyed.
struct View {
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;  // elements
    int64_t offset = 0;            // elements
    int64_t item = 0;              // bytes of an element

    explicit View(const aclTensor& tensor);
    View() = default;

    int64_t count() const;
    // Whether the elements lie side by side in row-major order, wherever they start.
    bool is_dense() const;
    // Bytes from the first to the last element touched, and where they start.
    int64_t first_byte() const;
    int64_t extent_bytes() const;
};

// Elements of the view, in row-major order, to `dense`.
void gather(const View& view, const void* data, void* dense);
// The other way round.
void scatter(const View& view, const void* dense, void* data);

}  // namespace emulator
