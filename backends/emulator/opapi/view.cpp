#include "view.h"

#include <algorithm>
#include <cstring>

#include "call.h"

namespace emulator {
namespace {

// Calls visit(position in the view, offset in the memory) for every element, row-major.
template <class Visit>
void for_each_element(const View& view, Visit visit) {
    const size_t rank = view.shape.size();
    std::vector<int64_t> index(rank, 0);
    int64_t offset = view.offset;
    for (int64_t position = 0, count = view.count(); position < count; ++position) {
        visit(position, offset);
        for (size_t axis = rank; axis-- > 0;) {
            offset += view.strides[axis];
            if (++index[axis] < view.shape[axis]) break;
            offset -= view.strides[axis] * view.shape[axis];
            index[axis] = 0;
        }
    }
}

}  // namespace

View::View(const aclTensor& tensor)
    : shape(tensor.shape), strides(tensor.strides), offset(tensor.offset), item(item_size(tensor.dtype)) {}

int64_t View::count() const { return element_count(shape); }

bool View::is_dense() const {
    const std::vector<int64_t> dense = row_major_strides(shape);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] > 1 && strides[axis] != dense[axis]) return false;
    }
    return true;
}

int64_t View::first_byte() const { return offset * item; }

int64_t View::extent_bytes() const {
    int64_t last = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) last += (shape[axis] - 1) * strides[axis];
    return (last + 1) * item;
}

void gather(const View& view, const void* data, void* dense) {
    const auto item = static_cast<size_t>(view.item);
    for_each_element(view, [&](int64_t position, int64_t offset) {
        std::memcpy(static_cast<char*>(dense) + position * view.item,
                    static_cast<const char*>(data) + offset * view.item, item);
    });
}

void scatter(const View& view, const void* dense, void* data) {
    const auto item = static_cast<size_t>(view.item);
    for_each_element(view, [&](int64_t position, int64_t offset) {
        std::memcpy(static_cast<char*>(data) + offset * view.item,
                    static_cast<const char*>(dense) + position * view.item, item);
    });
}

}  // namespace emulator
