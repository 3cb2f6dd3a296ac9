#include "tensor.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "../ascendcl/census.h"
#include "../ascendcl/defects.h"
#include "../ascendcl/errors.h"

namespace emulator {
namespace {

struct Register {
    std::mutex mutex;
    std::set<const aclTensor*> living;
};

Register& tensors() {
    static Register& instance = *new Register;  // never destroyed: worker threads may outlive static destructors
    return instance;
}

void note(const aclTensor* tensor, bool lives) {
    if (!has_defects) return;
    const std::lock_guard lock(tensors().mutex);
    if (lives) {
        tensors().living.insert(tensor);
    } else {
        tensors().living.erase(tensor);
    }
}

}  // namespace

bool is_living(const aclTensor* tensor) {
    const std::lock_guard lock(tensors().mutex);
    return tensors().living.count(tensor) != 0;
}

std::vector<int64_t> row_major_strides(const std::vector<int64_t>& shape) {
    std::vector<int64_t> strides(shape.size());
    int64_t step = 1;
    for (size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = step;
        step *= shape[axis];
    }
    return strides;
}

namespace {

// Only lists that are announced but missing are an error at creation; every other value is looked at later.
bool is_missing(const int64_t* values, uint64_t size) { return values == nullptr && size > 0; }

std::vector<int64_t> copy(const int64_t* values, uint64_t size) {
    return size == 0 ? std::vector<int64_t>() : std::vector<int64_t>(values, values + size);
}

aclTensor describe(const int64_t* shape, uint64_t rank, aclDataType dtype, const int64_t* strides, int64_t offset,
                   aclFormat format, const int64_t* storage, uint64_t storage_rank, void* data) {
    std::vector<int64_t> dims = copy(shape, rank);
    std::vector<int64_t> steps = strides == nullptr ? row_major_strides(dims) : copy(strides, rank);
    return {std::move(dims), std::move(steps), copy(storage, storage_rank), offset, dtype, format, data};
}

aclnnStatus null_argument(const char* function) {
    report(text("E", status::kNullPointer, ": ", function, ": an argument is null"));
    return status::kNullPointer;
}

// Callers get a copy and free it with delete[], as the real getters document.
aclnnStatus give(const std::vector<int64_t>& values, int64_t** result, uint64_t* size) {
    *result = new int64_t[values.size()];
    std::copy(values.begin(), values.end(), *result);
    *size = values.size();
    return status::kSuccess;
}

template <class Value>
aclnnStatus give_field(const char* function, const aclTensor* tensor, Value aclTensor::* field, Value* result) {
    if (tensor == nullptr || result == nullptr) return null_argument(function);
    *result = tensor->*field;
    return status::kSuccess;
}

aclnnStatus give_list(const char* function, const aclTensor* tensor, std::vector<int64_t> aclTensor::* field,
                      int64_t** result, uint64_t* size) {
    if (tensor == nullptr || result == nullptr || size == nullptr) return null_argument(function);
    return give(tensor->*field, result, size);
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" aclTensor* aclCreateTensor(const int64_t* shape, uint64_t rank, aclDataType dtype, const int64_t* strides,
                                      int64_t offset, aclFormat format, const int64_t* storage, uint64_t storage_rank,
                                      void* data) {
    if (is_missing(shape, rank) || is_missing(storage, storage_rank)) return nullptr;
    born(Kind::kTensor);
    auto* tensor = new aclTensor(describe(shape, rank, dtype, strides, offset, format, storage, storage_rank, data));
    note(tensor, true);
    return tensor;
}

extern "C" aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* shape, uint64_t rank, aclDataType dtype,
                                     const int64_t* strides, int64_t offset, aclFormat format, const int64_t* storage,
                                     uint64_t storage_rank, void* data) {
    if (tensor == nullptr || is_missing(shape, rank) || is_missing(storage, storage_rank)) {
        return null_argument("aclInitTensor");
    }
    *tensor = describe(shape, rank, dtype, strides, offset, format, storage, storage_rank, data);
    return status::kSuccess;
}

extern "C" aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
    if (tensor != nullptr) gone(Kind::kTensor);
    note(tensor, false);
    delete tensor;
    return status::kSuccess;
}

extern "C" aclIntArray* aclCreateIntArray(const int64_t* values, uint64_t size) {
    if (is_missing(values, size)) return nullptr;
    born(Kind::kIntArray);
    return new aclIntArray{copy(values, size)};
}

extern "C" aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
    if (array != nullptr) gone(Kind::kIntArray);
    delete array;
    return status::kSuccess;
}

extern "C" aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
    if (array == nullptr || size == nullptr) return null_argument("aclGetIntArraySize");
    *size = array->values.size();
    return status::kSuccess;
}

extern "C" aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** result, uint64_t* size) {
    return give_list("aclGetViewShape", tensor, &aclTensor::shape, result, size);
}

extern "C" aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** result, uint64_t* size) {
    return give_list("aclGetViewStrides", tensor, &aclTensor::strides, result, size);
}

extern "C" aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** result, uint64_t* size) {
    return give_list("aclGetStorageShape", tensor, &aclTensor::storage, result, size);
}

extern "C" aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* result) {
    return give_field("aclGetViewOffset", tensor, &aclTensor::offset, result);
}

extern "C" aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* result) {
    return give_field("aclGetFormat", tensor, &aclTensor::format, result);
}

extern "C" aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* result) {
    return give_field("aclGetDataType", tensor, &aclTensor::dtype, result);
}

extern "C" aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** result) {
    return give_field("aclGetRawTensorAddr", tensor, &aclTensor::data, result);
}

extern "C" aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* address) {
    if (tensor == nullptr) return null_argument("aclSetRawTensorAddr");
    if (!seeded(Defect::tensor_address_kept)) tensor->data = address;
    return status::kSuccess;
}

extern "C" aclnnStatus aclnnInit(const char*) { return status::kSuccess; }

extern "C" aclnnStatus aclnnFinalize() { return status::kSuccess; }
