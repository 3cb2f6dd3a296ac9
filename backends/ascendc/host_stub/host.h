// What an operator's own host code (its tiling) is compiled against in place of CANN: as much of the host framework as
// tilings ask, written from its public documentation (tiling of operators: TilingContext, PlatformAscendC, TilingData).
// A call is fixed before the tiling begins, so all here is plain data; host.cpp reads it and runs the tiling.
#pragma once
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

constexpr int EOK = 0;
inline int memset_s(void* to, size_t, int value, size_t count) { memset(to, value, count); return EOK; }

// ---- graph: statuses, types and formats, by their numbers

namespace ge {
using graphStatus = uint32_t;
constexpr graphStatus GRAPH_SUCCESS = 0, GRAPH_FAILED = 0xFFFFFFFF, GRAPH_PARAM_INVALID = 0x03000001;
enum DataType {
    DT_FLOAT = 0, DT_FLOAT16 = 1, DT_INT8 = 2, DT_INT32 = 3, DT_UINT8 = 4, DT_INT16 = 6, DT_UINT16 = 7, DT_UINT32 = 8,
    DT_INT64 = 9, DT_UINT64 = 10, DT_DOUBLE = 11, DT_BOOL = 12, DT_BF16 = 27, DT_UNDEFINED = 28, DT_MAX = 60
};
enum Format {
    FORMAT_NCHW = 0, FORMAT_NHWC = 1, FORMAT_ND = 2, FORMAT_NC1HWC0 = 3, FORMAT_NDHWC = 27, FORMAT_NCDHW = 30,
    FORMAT_NDC1HWC0 = 32, FORMAT_RESERVED = 40
};
inline int GetSizeByDataType(DataType type)
{
    switch (type) {
        case DT_INT8: case DT_UINT8: case DT_BOOL: return 1;
        case DT_FLOAT16: case DT_BF16: case DT_INT16: case DT_UINT16: return 2;
        case DT_INT64: case DT_UINT64: case DT_DOUBLE: return 8;
        default: return 4;
    }
}
inline Format GetPrimaryFormat(int format) { return static_cast<Format>(format); }
struct TypeUtils {
    static std::string DataTypeToSerialString(DataType type) { return "dtype " + std::to_string(type); }
    static std::string FormatToSerialString(Format format) { return "format " + std::to_string(format); }
};
}  // namespace ge

// ---- platform

namespace fe {
struct PlatFormInfos {
    int architecture = 220;
    uint32_t cores = 0;
    uint64_t ub_bytes = 0;
    bool GetPlatformRes(const std::string&, const std::string&, std::string& value) const { value.clear(); return false; }
};
}  // namespace fe
enum class NpuArch { DAV_RESV = 0, DAV_2002 = 2002, DAV_2201 = 2201, DAV_3003 = 3003, DAV_3510 = 3510, DAV_5102 = 5102 };
namespace platform_ascendc {
enum class SocVersion { ASCEND910, ASCEND910B, ASCEND310P, ASCEND310B, ASCEND910_93, ASCEND950, RESERVED_VERSION = 99999 };
enum class CoreMemType { L0_A, L0_B, L0_C, L1, L2, UB, HBM, RESERVED };
class PlatformAscendC {
public:
    explicit PlatformAscendC(const fe::PlatFormInfos* infos) : infos_(infos) {}
    SocVersion GetSocVersion() const { return is_950() ? SocVersion::ASCEND950 : SocVersion::ASCEND910B; }
    NpuArch GetCurNpuArch() const { return is_950() ? NpuArch::DAV_3510 : NpuArch::DAV_2201; }
    uint32_t GetCoreNum() const { return infos_->cores; }
    uint32_t GetCoreNumAiv() const { return infos_->cores; }
    uint32_t GetCoreNumAic() const { return infos_->cores / 2; }
    void GetCoreMemSize(CoreMemType type, uint64_t& bytes) const { bytes = type == CoreMemType::UB ? infos_->ub_bytes : 0; }
    uint32_t GetLibApiWorkSpaceSize() const { return 0; }  // of the system's part of a workspace the model has none

private:
    bool is_950() const { return infos_->architecture == 310; }
    const fe::PlatFormInfos* infos_;
};
}  // namespace platform_ascendc

// ---- runtime: shapes, attributes, and the context of one tiling

namespace gert {
class Shape {
public:
    Shape() = default;
    Shape(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
    explicit Shape(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}
    size_t GetDimNum() const { return sizes_.size(); }
    int64_t GetDim(size_t axis) const { return sizes_.at(axis); }
    int64_t operator[](size_t axis) const { return sizes_.at(axis); }
    int64_t GetShapeSize() const { int64_t count = 1; for (int64_t size : sizes_) count *= size; return count; }
    bool IsScalar() const { return sizes_.empty(); }
    void AppendDim(int64_t size) { sizes_.push_back(size); }
    void SetDim(size_t axis, int64_t size) { sizes_.at(axis) = size; }
    void SetDimNum(size_t count) { sizes_.resize(count); }
    bool operator==(const Shape& other) const { return sizes_ == other.sizes_; }
    bool operator!=(const Shape& other) const { return sizes_ != other.sizes_; }

private:
    std::vector<int64_t> sizes_;
};
struct StorageShape {
    Shape shape;
    const Shape& GetStorageShape() const { return shape; }
    const Shape& GetOriginShape() const { return shape; }
};
struct CompileTimeTensorDesc {
    ge::DataType type;
    ge::Format format;
    ge::DataType GetDataType() const { return type; }
    ge::Format GetStorageFormat() const { return format; }
    ge::Format GetOriginFormat() const { return format; }
};
struct Tensor {};
template <class T> struct TypedContinuousVector {
    std::vector<T> values;
    size_t GetSize() const { return values.size(); }
    const T* GetData() const { return values.data(); }
};
using ContinuousVector = TypedContinuousVector<int64_t>;
struct Attribute {  // as text and, where it is a number or several, as numbers
    std::string text;
    ContinuousVector list;
    int64_t number = 0;
    bool flag = false;
};
class RuntimeAttrs {
public:
    std::vector<Attribute> all;
    size_t GetAttrNum() const { return all.size(); }
    const ContinuousVector* GetListInt(size_t index) const { return GetAttrPointer<ContinuousVector>(index); }
    const bool* GetBool(size_t index) const { return GetAttrPointer<bool>(index); }
    const int64_t* GetInt(size_t index) const { return GetAttrPointer<int64_t>(index); }
    const char* GetStr(size_t index) const { return GetAttrPointer<char>(index); }
    template <class T> const T* GetAttrPointer(size_t index) const
    {
        if (index >= all.size()) return nullptr;
        if constexpr (std::is_same_v<T, char>) return all[index].text.c_str();
        else if constexpr (std::is_same_v<T, bool>) return &all[index].flag;
        else if constexpr (std::is_integral_v<T>) return reinterpret_cast<const T*>(&all[index].number);
        else return &all[index].list;
    }
};
class TilingData {
public:
    void* GetData() { return bytes_.data(); }
    size_t GetCapacity() const { return bytes_.size(); }
    void SetDataSize(size_t size) { size_ = size; }
    size_t GetDataSize() const { return size_; }

private:
    std::vector<uint8_t> bytes_ = std::vector<uint8_t>(1 << 16);
    size_t size_ = 0;
};
struct ComputeNodeInfo {
    size_t inputs, outputs;
    size_t GetInputsNum() const { return inputs; }
    size_t GetOutputsNum() const { return outputs; }
};
struct Operand {
    StorageShape shape;
    CompileTimeTensorDesc description;
};
class TilingContext {
public:
    std::string type;
    std::vector<Operand> inputs, outputs;
    RuntimeAttrs attributes;
    fe::PlatFormInfos platform;
    std::vector<uint64_t> compiled = std::vector<uint64_t>(512);
    TilingData data;
    size_t workspace[16] = {};
    uint64_t key = 0;
    uint32_t blocks = 0;
    int32_t is_deterministic = 0;

    const char* GetNodeName() const { return type.c_str(); }
    const char* GetNodeType() const { return type.c_str(); }
    const StorageShape* GetInputShape(size_t index) const { return index < inputs.size() ? &inputs[index].shape : nullptr; }
    const StorageShape* GetOptionalInputShape(size_t index) const { return GetInputShape(index); }
    const StorageShape* GetOutputShape(size_t index) const { return index < outputs.size() ? &outputs[index].shape : nullptr; }
    const CompileTimeTensorDesc* GetInputDesc(size_t index) const { return index < inputs.size() ? &inputs[index].description : nullptr; }
    const CompileTimeTensorDesc* GetOutputDesc(size_t index) const { return index < outputs.size() ? &outputs[index].description : nullptr; }
    const Tensor* GetInputTensor(size_t) const { return nullptr; }
    const RuntimeAttrs* GetAttrs() const { return &attributes; }
    const ComputeNodeInfo* GetComputeNodeInfo() { node_ = {inputs.size(), outputs.size()}; return &node_; }
    fe::PlatFormInfos* GetPlatformInfo() const { return const_cast<fe::PlatFormInfos*>(&platform); }
    const void* GetCompileInfo() const { return compiled.data(); }
    template <class T> const T* GetCompileInfo() const { return reinterpret_cast<const T*>(compiled.data()); }
    TilingData* GetRawTilingData() { return &data; }
    template <class T> T* GetTilingData() { data.SetDataSize(sizeof(T)); return static_cast<T*>(data.GetData()); }
    size_t* GetWorkspaceSizes(size_t) { return workspace; }
    uint64_t GetTilingKey() const { return key; }
    void SetTilingKey(uint64_t value) { key = value; }
    uint32_t GetBlockDim() const { return blocks; }
    void SetBlockDim(uint32_t count) { blocks = count; }
    int32_t GetDeterministic() const { return is_deterministic; }
    void SetScheduleMode(uint32_t) {}
    ge::graphStatus SetLocalMemorySize(uint32_t) { return ge::GRAPH_SUCCESS; }
    void SetNeedAtomic(bool) {}

private:
    ComputeNodeInfo node_{};
};
class TilingParseContext {
public:
    explicit TilingParseContext(TilingContext& context) : context_(context) {}
    const char* GetNodeName() const { return context_.GetNodeName(); }
    const char* GetNodeType() const { return context_.GetNodeType(); }
    fe::PlatFormInfos* GetPlatformInfo() const { return context_.GetPlatformInfo(); }
    template <class T> T* GetCompiledInfo() { return new (context_.compiled.data()) T(); }

private:
    TilingContext& context_;
};
class InferShapeContext;
class InferDataTypeContext;
}  // namespace gert

// ---- registration of tilings

namespace stub {
struct Registered {
    ge::graphStatus (*tiling)(gert::TilingContext*) = nullptr;
    ge::graphStatus (*parse)(gert::TilingParseContext*) = nullptr;
};
std::map<std::string, Registered>& registered();
class Registration {
public:
    explicit Registration(const char* type) : functions_(registered()[type]) {}
    Registration& Tiling(decltype(Registered::tiling) function) { functions_.tiling = function; return *this; }
    template <class T>
    Registration& TilingParse(decltype(Registered::parse) function) { functions_.parse = function; return *this; }
    template <class... T> Registration& TilingInputsDataDependency(T...) { return *this; }
    Registration& InputsDataDependency(std::initializer_list<int>) { return *this; }

private:
    Registered& functions_;
};
void say(const char* file, int line, const std::string& text);
template <class... T> std::string text_of(const char* format, T... values)
{
    char text[1024];
    snprintf(text, sizeof text, format, values...);
    return text;
}
}  // namespace stub
#define IMPL_OP_OPTILING(Type) static stub::Registration registration_of_##Type = stub::Registration(#Type)
#define IMPL_OP(Type) IMPL_OP_OPTILING(Type)

// ---- tiling data, and keys: each template argument has the bits that its declaration says, the first the lowest

#define BEGIN_TILING_DATA_DEF(Type) class Type { public:
#define TILING_DATA_FIELD_DEF(Type, name) Type name{}; void set_##name(Type value_) { name = value_; } Type get_##name() const { return name; }
#define TILING_DATA_FIELD_DEF_ARR(Type, count, name) Type name[count]{}; void set_##name(const Type* values_) { memcpy(name, values_, sizeof name); } Type* get_##name() { return name; }
#define TILING_DATA_FIELD_DEF_STRUCT(Type, name) Type name;
#define END_TILING_DATA_DEF void SaveToBuffer(void* to_, size_t) const { memcpy(to_, this, sizeof *this); } size_t GetDataSize() const { return sizeof *this; } }
#define REGISTER_TILING_DATA_CLASS(Key, Type)
#define ASCENDC_TPL_4_BW 4
#define ASCENDC_TPL_DTYPE_DECL(name, ...) 8
#define ASCENDC_TPL_BOOL_DECL(name, ...) 1
#define ASCENDC_TPL_UINT_DECL(name, bits, ...) bits
#define ASCENDC_TPL_ARGS_DECL(Type, ...) static constexpr int tiling_key_bits[] = {__VA_ARGS__}
#define ASCENDC_TPL_SEL(...)
#define GET_TPL_TILING_KEY(...) stub::tiling_key(tiling_key_bits, {__VA_ARGS__})
namespace stub {
template <size_t COUNT> uint64_t tiling_key(const int (&bits)[COUNT], const std::vector<uint64_t>& values)
{
    uint64_t key = 0, shift = 0;
    for (size_t index = 0; index < COUNT && index < values.size(); shift += bits[index++]) key |= values[index] << shift;
    return key;
}
}  // namespace stub

// ---- logs: the last error is what a refused call is told; checks; arithmetic of sizes

#define STUB_SAY(text) stub::say(__FILE__, __LINE__, text)
enum LogLevel { DLOG_DEBUG, OP };
inline int CheckLogLevel(int, int) { return 0; }  // nothing below an error is logged
#define OP_LOGD(...)
#define OP_LOGI(...)
#define OP_LOGW(...)
#define OP_LOGE(context, ...) STUB_SAY(stub::text_of(__VA_ARGS__))
#define OP_LOGE_WITHOUT_REPORT(context, ...) OP_LOGE(context, __VA_ARGS__)
#define REPORT_INNER_ERR_MSG(...)
#define VECTOR_INNER_ERR_REPORT_TILIING(context, ...) OP_LOGE(context, __VA_ARGS__)
#define CUBE_INNER_ERR_REPORT(context, ...) OP_LOGE(context, __VA_ARGS__)
#define OP_LOGE_WITH_INVALID_ATTR(...) STUB_SAY("invalid attribute: " #__VA_ARGS__)
#define OP_LOGE_WITH_INVALID_INPUT(...) STUB_SAY("invalid input: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE(...) STUB_SAY("invalid shape size: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM(...) STUB_SAY("invalid number of axes: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE(...) STUB_SAY("invalid shape: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE(...) STUB_SAY("invalid dtype: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMAT(...) STUB_SAY("invalid format: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE(...) STUB_SAY("invalid value: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_LISTSIZE(...) STUB_SAY("invalid length: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_STRIDE(...) STUB_SAY("invalid stride: " #__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPESIZE_WITH_REASON(...) OP_LOGE_FOR_INVALID_SHAPESIZE(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIM_WITH_REASON(...) OP_LOGE_FOR_INVALID_SHAPEDIM(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPEDIMS_WITH_REASON(...) OP_LOGE_FOR_INVALID_SHAPEDIM(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPE_WITH_REASON(...) OP_LOGE_FOR_INVALID_SHAPE(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_SHAPES_WITH_REASON(...) OP_LOGE_FOR_INVALID_SHAPE(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPE_WITH_REASON(...) OP_LOGE_FOR_INVALID_DTYPE(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_DTYPES_WITH_REASON(...) OP_LOGE_FOR_INVALID_DTYPE(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_FORMATS_WITH_REASON(...) OP_LOGE_FOR_INVALID_FORMAT(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUE_WITH_REASON(...) OP_LOGE_FOR_INVALID_VALUE(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_VALUES_WITH_REASON(...) OP_LOGE_FOR_INVALID_VALUE(__VA_ARGS__)
#define OP_LOGE_FOR_INVALID_CONFIG_WITH_REASON(...) STUB_SAY("invalid configuration: " #__VA_ARGS__)
#define OP_CHECK_IF(condition, log, ...) do { if (condition) { log; __VA_ARGS__; } } while (0)
#define OP_TILING_CHECK(condition, log, ...) OP_CHECK_IF(condition, log, __VA_ARGS__)
#define OP_CHECK_NULL_WITH_CONTEXT(context, pointer) do { if ((pointer) == nullptr) return ge::GRAPH_FAILED; } while (0)
namespace AscendC {}  // which host code opens though it uses nothing of it
namespace Ops {
namespace Base {
template <class T, class U>
T CeilDiv(T value, U unit) { return unit == 0 ? value : static_cast<T>((value + unit - 1) / unit); }
template <class T, class U> T FloorDiv(T value, U unit) { return unit == 0 ? value : static_cast<T>(value / unit); }
template <class T, class U>
T CeilAlign(T value, U unit) { return unit == 0 ? value : static_cast<T>((value + unit - 1) / unit * unit); }
template <class T, class U>
T FloorAlign(T value, U unit) { return unit == 0 ? value : static_cast<T>(value / unit * unit); }
template <class T> uint32_t GetUbBlockSize(const T*) { return 32; }
template <class T> uint32_t GetVRegSize(const T*) { return 256; }
inline const gert::Shape& EnsureNotScalar(const gert::Shape& shape) { static const gert::Shape one{1}; return shape.IsScalar() ? one : shape; }
template <class T> std::string ToString(const T&) { return ""; }
}  // namespace Base
}  // namespace Ops
