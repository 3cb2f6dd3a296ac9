// Kernels for the model of Ascend C: of VALUES what is put in and what comes out, worked by hand; of FAULT what the watch says
// of a call where the kernel is `bad`, and nothing where it is not. test_ascendc_model.py runs each of them under its name.
#include <map>
#include <string>

#include "kernel_operator.h"
#include "launch.h"

using namespace AscendC;
using namespace AscendC::MicroAPI;

namespace {

constexpr float nan = NAN, inf = INFINITY;
constexpr uint64_t ub_bytes = 8192;

template <class X, class Y>
struct Kernel {
    TPipe pipe;
    GlobalTensor<X> gx;
    GlobalTensor<Y> gy, gw;          // output and workspace
    LocalTensor<X> x, z;             // each of 1024 bytes of UB
    LocalTensor<Y> y;
    LocalTensor<uint8_t> bits;
    uint8_t* tiling;
    bool bad;

    explicit Kernel(uint8_t** arguments, bool is_bad) : tiling(arguments[3]), bad(is_bad) {
        gx.SetGlobalBuffer(reinterpret_cast<X*>(arguments[0]));
        gy.SetGlobalBuffer(reinterpret_cast<Y*>(arguments[1]));
        gw.SetGlobalBuffer(reinterpret_cast<Y*>(arguments[2]));
        TBuf<> buffers[4];
        for (auto& buffer : buffers) pipe.InitBuffer(buffer, 1024);
        x = buffers[0].Get<X>(), y = buffers[1].Get<Y>(), z = buffers[2].Get<X>(), bits = buffers[3].Get<uint8_t>();
    }
};
struct Case {
    std::function<void(uint8_t**)> kernel;
    std::function<std::string(void* input, const void* output)> prepare, judge;
    uint32_t blocks, itemsize;
    bool auto_sync = true;
};
std::map<std::string, Case> cases;
const Case* chosen = nullptr;
bool is_bad = false;
std::string wrong;  // how the latest output differs

void all() { PipeBarrier<PIPE_ALL>(); }
template <class T> T* raw(const LocalTensor<T>& tensor) { return reinterpret_cast<T*>(tensor.GetPhyAddr()); }
uint32_t* words(const LocalTensor<float>& tensor) { return reinterpret_cast<uint32_t*>(tensor.GetPhyAddr()); }
half h(uint16_t bits) { return model::bits_of<half>(bits); }
bfloat16_t b(uint16_t bits) { return model::bits_of<bfloat16_t>(bits); }
template <class T> T counted(int i) { return T(static_cast<float>(i + 1)); }

// The input is the list and behind it zeros, or, of an empty list, 1, 2, 3 ...; the output begins with the list, and what lies
// behind it is 0.
template <class X, class Y, class Body>
void values(const char* name, std::vector<X> given, std::vector<Y> expected, Body body) {
    const auto kernel = [=](uint8_t** arguments) {
        Kernel<X, Y> k(arguments, false);
        DataCopy(k.x, k.gx, 1024 / sizeof(X));
        Duplicate(k.y.template ReinterpretCast<uint16_t>(), 0, 512);
        all();
        body(k);
        all();
        if (!GetBlockIdx()) DataCopy(k.gy, k.y, 1024 / sizeof(Y));
    };
    const auto prepare = [=](void* input, const void*) {
        for (size_t i = 0; i < 1024 / sizeof(X); ++i) {
            static_cast<X*>(input)[i] = i < given.size() ? given[i] : given.empty() ? counted<X>(i) : X(0.0f);
        }
        return std::string();
    };
    const auto judge = [=](void*, const void* output) {
        std::string wrong;
        const auto text = [](Y value) { return std::to_string(static_cast<double>(value)); };
        for (size_t i = 0; i < 1024 / sizeof(Y); ++i) {
            const Y owed = i < expected.size() ? expected[i] : Y(0.0f), got = static_cast<const Y*>(output)[i];
            if (!std::memcmp(&owed, &got, sizeof(Y)) || (owed != owed && got != got)) continue;
            wrong += "[" + std::to_string(i) + "] is " + text(got) + ", not " + text(owed) + "; ";
        }
        return wrong;
    };
    cases[name] = {kernel, prepare, judge, 1, sizeof(Y)};
}
template <class Body>
void fault(const char* name, uint32_t blocks, Body body) {
    const auto kernel = [=](uint8_t** arguments) {
        Kernel<float, float> k(arguments, is_bad);
        body(k);
    };
    const auto nothing = [](void*, const void*) { return std::string(); };
    cases[name] = {kernel, nothing, nothing, blocks, 4};
}

#define FAULT_UNSYNCED(name, call, ...) FAULT(name, call, __VA_ARGS__) cases[name].auto_sync = false;
#define LIST(...) {__VA_ARGS__}
#define NAMES [[maybe_unused]] auto& [pipe, gx, gy, gw, x, z, y, bits, tiling, bad] = kernel
#define VALUES(name, X, Y, given, expected, ...) \
    values<X, Y>(name, given, expected, [](Kernel<X, Y>& kernel) { NAMES; __VA_ARGS__ });
#define FAULT(name, call, ...) fault(name, 1, [](Kernel<float, float>& kernel) { NAMES; __VA_ARGS__ });
#define FAULT_OF_CORES(name, call, ...) fault(name, 2, [](Kernel<float, float>& kernel) { NAMES; __VA_ARGS__ });
#define REGISTERS(...) __VEC_SCOPE__ { __VA_ARGS__ }

void arithmetic() {
    VALUES("a mask bit by bit", float, float, {}, LIST(2, 0, 4), uint64_t mask[] = {5, 0}; Adds(y, x, 1.0f, mask, 1, {});)
    VALUES("repeats have strides", float, float, {}, LIST(2, 3, 4, 0, 0, 0, 0, 0, 18, 19, 20),
           Adds(y, x, 1.0f, 3, 2, {1, 1, 1, 2});)
    VALUES("blocks have strides", float, float, {}, LIST(2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 18, 19),
           Adds(y, x, 1.0f, 10, 1, {2, 2, 8, 8});)
    VALUES("a count ends within a block", float, float, {}, LIST(2, 4, 6, 8, 10), Add(y, x, x, 5);)
    VALUES("all lanes are loaded before the first is stored", float, float, {},
           LIST(1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 6, 7, 8, 9, 10),
           Copy(y, x, 9, 1, {}); Adds(y[8], y, 1.0f, 9);)
    VALUES("integers wrap", int32_t, int32_t, LIST(1 << 30, INT32_MIN), LIST(INT32_MIN, 0), Muls(y, x, 2, 2);)
    VALUES("integers are divided towards 0", int32_t, int32_t, LIST(7, -7, 1, 0, 0, 0, 0, 0, 2, 2, 0), LIST(3, -3, -1),
           Div(y, x, x[8], 3);)
    VALUES("half rounds what it computes", half, half, LIST(h(0x3c00), h(0x3c01)), LIST(h(0x3c00), h(0x3c02)),
           Adds(y, x, h(0x1000), 2);)
    VALUES("bits", uint16_t, uint16_t, LIST(1, 6), LIST(0xfffa, 0xfff9),
           Duplicate(z, 4, 2); Or(y, x, z, 2); Not(y, y, 2);)
    VALUES("Or with ones and And with zeros hang on nothing else", uint16_t, uint16_t, LIST(0xffff, 0xffff), LIST(0xffff, 0xffff),
           Or(y, x, z, 2); And(y[16], x[16], z, 2);)
    VALUES("Max: NaN, and +0.0 above -0.0", float, float, LIST(1, nan, 0.0f, -0.0f, 2, 0, 0, 0, 2, 1, -0.0f, 0.0f, nan),
           LIST(2, nan, 0.0f, 0.0f, nan), Max(y, x, x[8], 5);)
    VALUES("Min: NaN, and +0.0 above -0.0", float, float, LIST(1, nan, 0.0f, -0.0f, 2, 0, 0, 0, 2, 1, -0.0f, 0.0f, nan),
           LIST(1, nan, -0.0f, -0.0f, nan), Min(y, x, x[8], 5);)
    VALUES("ReduceMax: the first place of the greatest", float, float, LIST(1, 7, 3, 7, 9), LIST(7, model::bits_of<float>(1)),
           ReduceMax(y, x, z, 4, true);)
    VALUES("ReduceMax: the place counts on from repeat to repeat", half, half, {}, LIST(300.0f, h(299)),
           ReduceMax(y, x, z, 300, true);)
    VALUES("ReduceMax: the first NaN", float, float, LIST(1, nan, 9, nan), LIST(nan, model::bits_of<float>(1)),
           ReduceMax(y, x, z, 4, true);)
    VALUES("ReduceMax without a place", float, float, LIST(-4, -3), LIST(-3), ReduceMax(y, x, z, 2);)
    VALUES("ScalarCast", float, int32_t, LIST(2.5f, -2.5f, 0.4f), LIST(3, -3), for (int i = 0; i < 3; ++i)
           y.SetValue(i, ScalarCast<float, int32_t, RoundMode::CAST_ROUND>(x.GetValue(i)));)
    const auto compares = [](const char* name, CMPMODE mode, uint8_t first, uint8_t others) {
        const std::vector<float> given = {1, nan, 0.0f, -0.0f, 2};
        values<float, uint8_t>(name, given, {first, others, others, others, others, others, others, others}, [=](auto& k) {
            const float second[] = {2, 1, -0.0f, 0.0f, nan};
            for (int i = 0; i < 64; ++i) k.z.SetValue(i, i < 5 ? second[i] : 0);
            Compare(k.y, k.x, k.z, mode, 64, 1, BinaryRepeatParams());
        });
    };
    compares("Compare LT", CMPMODE::LT, 0x01, 0), compares("Compare GT", CMPMODE::GT, 0, 0);
    compares("Compare EQ", CMPMODE::EQ, 0xec, 0xff), compares("Compare NE", CMPMODE::NE, 0x13, 0);
    compares("Compare LE", CMPMODE::LE, 0xed, 0xff), compares("Compare GE", CMPMODE::GE, 0xec, 0xff);
    VALUES("Compare of 950 heeds its mask", float, uint8_t, {}, LIST(7),
           Compare(y, x, x, CMPMODE::EQ, 3, 1, BinaryRepeatParams());)
    VALUES("Arange and CreateVecIndex take equal steps", int32_t, int32_t, {}, LIST(5, 8, 11, 0, 0, 0, 0, 0, 7, 8),
           Arange(y, 5, 3, 3); CreateVecIndex(y[8], 7, 2);)
    VALUES("Select by bits that go on", float, float, {}, LIST(9, 2, 3, 9),
           Duplicate(bits.ReinterpretCast<uint16_t>(), 6, 16);
           Select(y, bits, x, 9.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 4);)
    VALUES("sixteen blocks of b16 are transposed", uint16_t, uint16_t, {}, LIST(1, 17, 33, 49, 65, 81, 97, 113, 129, 145, 161, 177, 193, 209, 225, 241), uint64_t to[16], from[16];
           for (int i = 0; i < 16; ++i) to[i] = y[i * 16].GetPhyAddr(), from[i] = x[i * 16].GetPhyAddr();
           TransDataTo5HD<uint16_t>(to, from, {}); Duplicate(y[16], 0, 496);)
    VALUES("sixteen blocks of b32 are transposed", uint32_t, uint32_t, {}, LIST(1, 9, 17, 25, 33, 41, 49, 57, 65, 73, 81, 89, 97, 105, 113, 121),
           uint64_t to[16], from[16];
           for (int i = 0; i < 16; ++i) to[i] = y[i * 8].GetPhyAddr(), from[i] = x[i * 8].GetPhyAddr();
           TransDataTo5HD<uint32_t>(to, from, {}); Duplicate(y[16], 0, 240);)
}

template <class T> using list = std::vector<T>;
template <class To, class From>
void cast(const char* name, RoundMode mode, list<From> given, list<To> expected) {
    const auto count = static_cast<uint64_t>(given.size());
    values<From, To>(name, given, expected, [=](Kernel<From, To>& k) { Cast(k.y, k.x, mode, count); });
}
void casts() {
    const list<float> ties = {1 + 0x1p-11f, 1 + 0x3p-11f, -1 - 0x1p-12f, 65520};
    const list<float> wholes = {2.5f, -1.5f, 0.75f, 3e9f, -inf, nan};
    const int32_t most = INT32_MAX, least = INT32_MIN;
    cast<half>("half by NONE", RoundMode::CAST_NONE, ties, {h(0x3c00), h(0x3c02), h(0xbc00), h(0x7c00)});
    cast<half>("half by RINT", RoundMode::CAST_RINT, ties, {h(0x3c00), h(0x3c02), h(0xbc00), h(0x7c00)});
    cast<half>("half by FLOOR", RoundMode::CAST_FLOOR, ties, {h(0x3c00), h(0x3c01), h(0xbc01), h(0x7bff)});
    cast<half>("half by CEIL", RoundMode::CAST_CEIL, ties, {h(0x3c01), h(0x3c02), h(0xbc00), h(0x7c00)});
    cast<half>("half by ROUND", RoundMode::CAST_ROUND, ties, {h(0x3c01), h(0x3c02), h(0xbc00), h(0x7c00)});
    cast<half>("half by TRUNC", RoundMode::CAST_TRUNC, ties, {h(0x3c00), h(0x3c01), h(0xbc00), h(0x7bff)});
    cast<half>("half by ODD", RoundMode::CAST_ODD, ties, {h(0x3c01), h(0x3c01), h(0xbc01), h(0x7bff)});
    cast<half>("half of small and special values", RoundMode::CAST_NONE, list<float>{0x1p-25f, 0x3p-26f, nan, -0.0f, -inf},
               {h(0), h(1), h(0x7e00), h(0x8000), h(0xfc00)});
    cast<bfloat16_t>("bfloat16", RoundMode::CAST_RINT, list<float>{1 + 0x1p-8f, 1 + 0x3p-8f, 3.4e38f, nan},
                     {b(0x3f80), b(0x3f82), b(0x7f80), b(0x7fc0)});
    cast<float>("float of half", RoundMode::CAST_NONE, list<half>{h(1), h(0x3c01), h(0xfc00)},
                {0x1p-24f, 1 + 0x1p-10f, -inf});
    cast<float>("float of bfloat16", RoundMode::CAST_NONE, list<bfloat16_t>{b(1), b(0x3f81), b(0x8000)},
                {0x1p-133f, 1 + 0x1p-7f, -0.0f});
    cast<float>("float without its fraction", RoundMode::CAST_FLOOR, list<float>{1.5f, -1.5f}, {1, -2});
    cast<int32_t>("int32 by RINT", RoundMode::CAST_RINT, wholes, {2, -2, 1, most, least, 0});
    cast<int32_t>("int32 by FLOOR", RoundMode::CAST_FLOOR, wholes, {2, -2, 0, most, least, 0});
    cast<int32_t>("int32 by CEIL", RoundMode::CAST_CEIL, wholes, {3, -1, 1, most, least, 0});
    cast<int32_t>("int32 by ROUND", RoundMode::CAST_ROUND, wholes, {3, -2, 1, most, least, 0});
    cast<int32_t>("int32 by TRUNC", RoundMode::CAST_TRUNC, wholes, {2, -1, 0, most, least, 0});
    cast<int64_t>("int64 of float", RoundMode::CAST_RINT, list<float>{-0x1p40f, 1e19f}, {-(int64_t{1} << 40), INT64_MAX});
    cast<int16_t>("int16 of float", RoundMode::CAST_TRUNC, list<float>{-40000, 7.9f}, {-32768, 7});
    cast<int32_t>("int32 of half", RoundMode::CAST_RINT, list<half>{h(0x3e00), h(0xfc00)}, {2, least});
    cast<int8_t>("int8 of half", RoundMode::CAST_RINT, list<half>{h(0x5c00), h(0xc200)}, {127, -3});
    cast<uint8_t>("uint8 of half", RoundMode::CAST_RINT, list<half>{h(0x5c01), h(0xc200)}, {255, 0});
    cast<int32_t>("int32 of bfloat16", RoundMode::CAST_TRUNC, list<bfloat16_t>{b(0x3fc0)}, {1});
    cast<float>("float of int32", RoundMode::CAST_RINT, list<int32_t>{(1 << 24) + 1, (1 << 24) + 3, -3},
                {0x1p24f, 0x1p24f + 4, -3});
    cast<float>("float of int64", RoundMode::CAST_FLOOR, list<int64_t>{(1 << 24) + 3, -(1 << 24) - 1},
                {0x1p24f + 2, -0x1p24f - 2});
    cast<int32_t>("int32 of int64", RoundMode::CAST_NONE, list<int64_t>{int64_t{1} << 31, -5}, {most, -5});
    cast<int64_t>("int64 of int32", RoundMode::CAST_NONE, list<int32_t>{-5}, {-5});
    cast<half>("half of int16", RoundMode::CAST_RINT, list<int16_t>{2049, 2051}, {h(0x6800), h(0x6802)});
    cast<half>("half of uint8", RoundMode::CAST_NONE, list<uint8_t>{255}, {h(0x5bf8)});
    cast<half>("half of int8", RoundMode::CAST_NONE, list<int8_t>{-1}, {h(0xbc00)});
}

template <class T>
void atomics(const char* name, std::vector<T> given, std::vector<T> expected) {
    values<T, T>(name, given, expected, [](Kernel<T, T>& k) {
        DataCopy(k.gw, k.y, 32), all();
        SetAtomicAdd<T>();
        DataCopy(k.gw, k.x, 32), all(), DataCopy(k.gw, k.x, 32), all();
        SetAtomicNone();
        DataCopy(k.y, k.gw, 32);
    });
}
void copies() {
    VALUES("rows of DataCopyPad are padded to blocks", float, float, {},
           LIST(9, 1, 2, 3, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 9, 5, 6, 7, 9, 9, 9, 9),
           DataCopyPad(y, gx, DataCopyExtParams(2, 12, 4, 1, 0), DataCopyPadExtParams<float>(true, 1, 2, 9.0f));)
    VALUES("without padding a row's first element fills its block", float, float, {},
           LIST(3, 4, 3, 3, 3, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5),
           DataCopyPad(y, gx[2], DataCopyExtParams(1, 8, 0, 0, 0), DataCopyPadExtParams<float>());
           DataCopyPad(y[8], gx[4], DataCopyExtParams(1, 4, 0, 0, 0), DataCopyPadExtParams<float>(true, 0, 0, 9.0f));)
    VALUES("DataCopyPad in loops", float, float, {},
           LIST(1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0, 19),
           SetLoopModePara({2, 2, 8, 32, 64, 64}, DataCopyMVType::OUT_TO_UB);
           DataCopyPad(y, gx, DataCopyExtParams(1, 4, 0, 0, 0), DataCopyPadExtParams<float>(true, 0, 7, 0.0f));
           ResetLoopModePara(DataCopyMVType::OUT_TO_UB);)
    VALUES("rows of a compact DataCopyPad follow each other", float, float, {}, LIST(1, 2, 3, 6, 7, 8, 9, 9),
           const DataCopyPadExtParams<float> padding(true, 0, 2, 9.0f);
           DataCopyPad<float, PaddingMode::Compact>(y, gx, DataCopyExtParams(2, 12, 8, 0, 0), padding);)
    VALUES("DataCopyPadParams hold the bits of a value", float, float, {}, LIST(9, 1, 2, 9, 9, 9, 9, 9),
           const DataCopyPadParams padding{true, 1, 1, model::Bits_of<float>{0x41100000}};
           DataCopyPad(y, gx, DataCopyParams(1, 8, 0, 0), padding);)
    VALUES("DataCopyPad to GM", float, float, {}, LIST(1, 0, 17), DataCopy(gw, y, 8); all();
           DataCopyPad(gw, x, DataCopyExtParams(2, 4, 1, 4, 0)); all(); DataCopy(y, gw, 8);)
    atomics<float>("float is added atomically", {1.5f, -0.0f}, {3, 0.0f});
    atomics<int32_t>("int32 is added atomically", {1 << 30}, {INT32_MIN});
    atomics<int16_t>("int16 is added atomically", {-3}, {-6});
    atomics<half>("half is added atomically", {h(0x3c00)}, {h(0x4000)});
    atomics<bfloat16_t>("bfloat16 is added atomically", {b(0x3f80)}, {b(0x4000)});
    VALUES("a queue hands its buffers on", float, float, {}, LIST(1, 2, 3, 4, 5, 6, 7, 8),
           TQue<TPosition::VECIN, 2> in; TQue<TPosition::VECOUT, 1> out; pipe.InitBuffer(in, 2, 512); pipe.InitBuffer(out, 1, 512);
           for (int i = 0; i < 3; ++i) {
               auto a = in.AllocTensor<float>(); DataCopy(a, gx, 8); in.EnQue(a);
               auto from = in.DeQue<float>(); auto to = out.AllocTensor<float>(); Adds(to, from, 0.0f, 8);
               out.EnQue(to); in.FreeTensor(from);
               auto done = out.DeQue<float>(); DataCopy(gw[i * 8], done, 8); out.FreeTensor(done);
           } all(); DataCopy(y, gw[16], 8);)
}

void registers() {
    VALUES("lanes that the mask leaves out are 0", float, float, {}, LIST(2, 3, 4), REGISTERS(
           RegTensor<float> a; uint32_t left = 3; MaskReg mask = UpdateMask<float>(left);
           LoadAlign(a, raw(x)); Adds(a, a, 1.0f, mask); StoreAlign(raw(y), a, CreateMask<float>());))
    VALUES("a store heeds its mask", float, float, {}, LIST(1, 1, 1), REGISTERS(
           RegTensor<float> a; Duplicate(a, 1.0f); StoreAlign(raw(y), a, CreateMask<float, MaskPattern::VL3>());))
    VALUES("Gather and Scatter by indices", float, float, {}, LIST(0, 0, 2, 0, 3, 0, 4), REGISTERS(
           RegTensor<float> a; RegTensor<uint32_t> index; MaskReg mask = CreateMask<float, MaskPattern::VL3>();
           Arange(index, 1);
           Gather(a, raw(x), index, mask); Muls(index, index, 2, mask); Scatter(raw(y), a, index, mask);))
    VALUES("Compare and Select of registers", float, float, {}, LIST(2, 2, 3, 2, 2, 2, 2, 2), REGISTERS(
           RegTensor<float> a, two; MaskReg mask = CreateMask<float, MaskPattern::VL3>(); LoadAlign(a, raw(x));
           Duplicate(two, 2.0f);
           Compare<float, CMPMODE::GE>(mask, a, two, mask); Select(a, a, two, mask);
           StoreAlign(raw(y), a, CreateMask<float, MaskPattern::VL8>());))
    VALUES("a narrowing cast of registers fills every second lane", float, half, LIST(1, 2),
           LIST(0, h(0x3c00), 0, h(0x4000)), REGISTERS(
           static constexpr CastTrait trait{RegLayout::ONE, SatMode::NO_SAT, MaskMergeMode::ZEROING, RoundMode::CAST_RINT};
           RegTensor<float> a; RegTensor<half> narrow; LoadAlign(a, raw(x));
           Cast<half, float, trait>(narrow, a, CreateMask<float>());
           StoreAlign(raw(y), narrow, CreateMask<half>());))
    VALUES("the high half of a product", uint32_t, uint32_t, LIST(1u << 31, 1 << 16, 3), LIST(1 << 30, 1), REGISTERS(
           RegTensor<uint32_t> a, low; LoadAlign(a, raw(x)); Mull(low, a, a, a, CreateMask<uint32_t>());
           StoreAlign(raw(y), a, CreateMask<uint32_t>());))
    VALUES("Pack keeps low halves side by side", uint32_t, uint16_t, LIST(65537, 2, 3), LIST(1, 2, 3), REGISTERS(
           RegTensor<uint32_t> a; RegTensor<uint16_t> low; LoadAlign(a, raw(x)); Pack(low, a);
           StoreAlign(raw(y), low, CreateMask<uint16_t>());))
    VALUES("UnPack keeps signs", int16_t, int32_t, LIST(-1, 2), LIST(-1, 2), REGISTERS(
           RegTensor<int16_t> a; RegTensor<int32_t> wide; LoadAlign(a, raw(x)); UnPack(wide, a);
           StoreAlign(raw(y), wide, CreateMask<int32_t>());))
    VALUES("Pack to, and UnPack of, the high half", uint32_t, uint32_t, {}, LIST(33, 34), REGISTERS(
           RegTensor<uint32_t> a; RegTensor<uint16_t> low; LoadAlign(a, raw(x));
           Pack<uint16_t, uint32_t, HighLowPart::HIGHEST>(low, a); Adds(low, low, 32, CreateMask<uint16_t>());
           UnPack<uint32_t, uint16_t, HighLowPart::HIGHEST>(a, low);
           StoreAlign(raw(y), a, CreateMask<uint32_t, MaskPattern::VL2>());))
    VALUES("masks combine", float, float, {}, LIST(1, 0, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0,
           0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1), REGISTERS(
           const MaskReg three = CreateMask<float, MaskPattern::VL3>(); const MaskReg four = CreateMask<float, MaskPattern::VL4>();
           RegTensor<float> a; MaskReg mask; MaskReg not_two; LoadAlign(a, raw(x));
           CompareScalar<float, CMPMODE::NE>(not_two, a, 2.0f, four);
           const auto store = [&](int row) {
               Duplicate(a, 1.0f, mask); StoreAlign(raw(y) + row * 8, a, CreateMask<float, MaskPattern::VL8>());
           };
           And(mask, three, not_two, four); store(0); Or(mask, three, not_two, four); store(1);
           MaskXor(mask, three, not_two, four); store(2); Not(mask, three, four); Move(mask, mask, four); store(3);))
    VALUES("masks are unpacked and packed", float, float, {}, LIST(1, 1, 1), REGISTERS(
           RegTensor<float> a; MaskReg mask = CreateMask<half, MaskPattern::VL3>();
           UnPack(mask, mask); Pack(mask, mask); UnPack(mask, mask);
           Duplicate(a, 1.0f, mask); StoreAlign(raw(y), a, CreateMask<float>());))
    VALUES("Reduce to a maximum and its first place", float, float, LIST(-4, 7, 3, 7, 9), LIST(7, model::bits_of<float>(1)), REGISTERS(
           RegTensor<float> a; LoadAlign(a, raw(x)); ReduceMax(a, a, CreateMask<float, MaskPattern::VL4>());
           StoreAlign(raw(y), a, CreateMask<float>());))
    VALUES("Reduce to a minimum and its first place", int16_t, int16_t, LIST(5, -2, -2, -9), LIST(-2, 1), REGISTERS(
           RegTensor<int16_t> a; LoadAlign(a, raw(x)); ReduceMin(a, a, CreateMask<int16_t, MaskPattern::VL3>());
           StoreAlign(raw(y), a, CreateMask<int16_t>());))
    VALUES("Reduce to the first NaN, and of no lanes", half, half, LIST(1, nan, 9, nan), LIST(nan, h(1), h(0xfc00)), REGISTERS(
           RegTensor<half> a; RegTensor<half> none; LoadAlign(a, raw(x)); UnalignRegForStore buffer; auto* to = raw(y);
           Reduce<ReduceType::MAX>(none, a, CreateMask<half, MaskPattern::ALLF>());
           Reduce<ReduceType::MAX>(a, a, CreateMask<half, MaskPattern::VL4>());
           StoreUnAlign(to, a, buffer, 2); StoreUnAlign(to, none, buffer, 2); StoreUnAlignPost(to, buffer, 0);))
    VALUES("Duplicate and Move of a register", float, float, {}, LIST(2, 2, 1), REGISTERS(
           RegTensor<float> a; RegTensor<float> b; LoadAlign(a, raw(x)); Duplicate(b, a, CreateMask<float>()); Adds(a, b, 1.0f, CreateMask<float>());
           Move(b, a, CreateMask<float, MaskPattern::VL2>()); StoreAlign(raw(y), b, CreateMask<float, MaskPattern::VL3>());))
    VALUES("names until CANN 9.1", float, float, {}, LIST(4, 5, 0, 0, 0, 0, 0, 0, 0, 5), REGISTERS(
           RegTensor<float> a, b; UnalignReg buffer; auto* from = raw(x) + 3; auto* to = raw(y);
           const MaskReg two = CreateMask<float, MaskPattern::VL2>(); const MaskReg one = CreateMask<float, MaskPattern::VL1>();
           LoadUnAlignPre(buffer, from); DataCopyUnAlign(b, buffer, from, 2); Copy(a, b, two);
           DataCopy<float, PostLiteral::POST_MODE_UPDATE>(to, a, 8, two);
           MaskReg mask; MaskNot(mask, one, two); MaskOr(mask, mask, mask, two); MaskPack(mask, mask); MaskUnPack(mask, mask);
           DataCopy(to, a, mask);))
    VALUES("one element is loaded to all lanes, and stored", float, float, {}, LIST(4, 4, 4, 4, 0, 4), REGISTERS(
           RegTensor<float> a; LoadAlign<float, LoadDist::DIST_BRC_B32>(a, raw(x) + 3);
           StoreAlign(raw(y), a, CreateMask<float, MaskPattern::VL4>());
           StoreAlign<float, StoreDist::DIST_FIRST_ELEMENT_B32>(raw(y) + 5, a, CreateMask<float, MaskPattern::ALLF>());))
    VALUES("addresses go on after a load and a store", float, float, {}, LIST(1, 2, 0, 0, 0, 0, 0, 0, 65, 66), REGISTERS(
           RegTensor<float> a; auto* from = raw(x); auto* to = raw(y); const MaskReg two = CreateMask<float, MaskPattern::VL2>();
           for (int i = 0; i < 2; ++i) {
               LoadAlign<float, PostLiteral::POST_MODE_UPDATE>(a, from, 64);
               StoreAlign<float, PostLiteral::POST_MODE_UPDATE>(to, a, 8, two);
           }))
    VALUES("an address register counts elements", float, float, {}, LIST(0, 0, 0, 0, 0, 0, 0, 0, 17), REGISTERS(
           RegTensor<float> a; const auto row = [](uint16_t i) { return CreateAddrReg<float>(i, 8); };
           DataCopy(a, raw(x), row(2)); DataCopy(raw(y), a, row(1), CreateMask<float, MaskPattern::VL1>());))
    VALUES("unaligned loads and stores go on", float, float, {}, LIST(0, 0, 0, 4, 5, 6, 7, 8), REGISTERS(
           RegTensor<float> a; auto* from = raw(x) + 3; auto* to = from; UnalignRegForLoad in; UnalignRegForStore out;
           to = raw(y) + 3; DataCopyUnAlignPre(in, from);
           DataCopyUnAlign(a, in, from, 2); DataCopyUnAlign(to, a, out, 2);
           DataCopyUnAlign(a, in, from, 2); DataCopyUnAlign(to, a, out, 3); DataCopyUnAlignPost(to, out, 0);))
    VALUES("a block that is not full waits for StoreUnAlignPost", float, float, {}, LIST(0, 0, 0, 1, 2, 3, 4, 5), REGISTERS(
           RegTensor<float> a; auto* to = raw(y) + 3; UnalignRegForStore out; LoadAlign(a, raw(x)); StoreUnAlign(to, a, out, 6);))
    VALUES("registers divide subnormals as zeros", float, float, LIST(0x1p-127f, -6), LIST(0, -6), REGISTERS(
           RegTensor<float> a, one; LoadAlign(a, raw(x)); Duplicate(one, 1.0f); Div(a, a, one, CreateMask<float>());
           StoreAlign(raw(y), a, CreateMask<float>());))
}

__simt_vf__ void add_one(uint32_t* y) { asc_atomic_add(y, 1); }
__simt_vf__ void store_thread(uint32_t* y) { *y = threadIdx.x; }
__simt_vf__ void wait_for_half(uint32_t*) {
    if (threadIdx.x % 2) __syncthreads();
}
template <bool waits>
__simt_vf__ void share(uint32_t* y) {
    if (threadIdx.x + 1 == blockDim.x) *y = 5;
    if (waits) __syncthreads();
    y[threadIdx.x + 1] = *y;
}
void threads_and_blocks() {
    VALUES("threads add atomically", uint32_t, uint32_t, {}, LIST(70), asc_vf_call<add_one>(dim3(70), raw(y));)
    VALUES("threads wait for each other", uint32_t, uint32_t, {}, LIST(5, 5, 5, 5),
           asc_vf_call<share<true>>(dim3(3), raw(y));)
    VALUES("blocks meet at SyncAll", uint32_t, uint32_t, {}, LIST(2),
           gw.SetValue(GetBlockIdx(), GetBlockIdx() + 1); SyncAll(); y.SetValue(0, gw.GetValue(1 - GetBlockIdx()));)
    cases["blocks meet at SyncAll"].blocks = 2;
    VALUES("CeilDivision", int32_t, int32_t, {}, LIST(4, 3), y.SetValue(0, CeilDivision(7, 2)); y.SetValue(1, CeilDivision(6, 2));)
    VALUES("a key chooses, and tiling data are copied", float, float, {}, LIST(5), GET_TILING_DATA(data, tiling);
           if (TILING_KEY_IS(8)) return; if (TILING_KEY_IS(7)) y.SetValue(0, data.words[1]);)
}

void memory() {
    FAULT("memcheck: load outside of every tensor", "DataCopy", DataCopy(x, gx[bad ? 200 : 192], 64);)
    FAULT("memcheck: store outside of every tensor", "SetValue", gy.SetValue(bad ? -2000 : 0, 1);)
    FAULT("memcheck: store to an input", "SetValue", (bad ? gx : gy).SetValue(0, 1);)
    FAULT("memcheck: store beyond the buffer of the tensor", "Duplicate", Duplicate(x, 1.0f, bad ? 257 : 256);)
    FAULT("memcheck: load beyond the buffer of the tensor", "DataCopy",
          Duplicate(x, 1.0f, 256); Duplicate(y, 1.0f, 8); all();
          DataCopy(gy, x[bad ? 248 : 0], bad ? 16 : 8);)
    FAULT("memcheck: store outside of UB", "SetValue", x.SetValue(bad ? 1 << 20 : 0, 1);)
    FAULT("memcheck: store beyond the end of UB", "StoreAlign", REGISTERS(
          RegTensor<float> a; Duplicate(a, 1.0f); StoreAlign(raw(x) + (bad ? 1992 : 1984), a, CreateMask<float>());))
    FAULT("memcheck: an operand in UB is not aligned to 32 bytes", "Duplicate", Duplicate(x[bad ? 4 : 8], 1.0f, 8);)
    FAULT("memcheck: an operand in UB is not aligned to 4 bytes", "LoadAlign", Duplicate(x, 1.0f, 8); REGISTERS(
          RegTensor<float> a; LoadAlign<float, LoadDist::DIST_BRC_B32>(a, reinterpret_cast<float*>(x.GetPhyAddr() + (bad ? 2 : 4)));))
    FAULT("memcheck: InitBuffer takes more than UB has", "InitBuffer",
          TBuf<> rest; pipe.InitBuffer(rest, bad ? 4097 : 4096);)
    FAULT("memcheck: a copy of more than 4095 blocks: blockCount", "DataCopyPad",
          DataCopyPad(x, gx, DataCopyExtParams(bad ? 4096 : 4095, 0, 0, 0, 0), DataCopyPadExtParams<float>());)
    FAULT("memcheck: a copy pads more than 32 bytes on one side", "DataCopyPad",
          DataCopyPad(x, gx, DataCopyExtParams(1, 4, 0, 0, 0), DataCopyPadExtParams<float>(true, bad ? 9 : 8, 0, 0));)
    FAULT("memcheck: Compare takes whole repeats of 256 bytes: the rest of its count is left out", "Compare",
          Duplicate(x, 1.0f, 128); Compare(bits, x, x, CMPMODE::EQ, bad ? 65 : 64);)
    FAULT("initcheck: a scalar is read from UB that was never written", "GetValue", x.SetValue(0, 1); x.GetValue(bad);)
    FAULT("initcheck: a scalar is read from GM that was never written", "GetValue", gw.SetValue(0, 1); gw.GetValue(bad);)
    FAULT("initcheck: an output is computed from, or added to, what was never written", "DataCopy",
          Duplicate(x, 1.0f, bad ? 7 : 8); Adds(x, x, 1.0f, 8); all(); DataCopy(gy, x, 8);)
    FAULT("initcheck: an address is computed from what was never written", "Gather", Duplicate(x, 1.0f, 8); REGISTERS(
          RegTensor<float> a; RegTensor<uint32_t> index; if (!bad) Arange(index, 0);
          Muls(index, index, 0, CreateMask<uint32_t>());
          LocalMemBar<MemType::VEC_STORE, MemType::VEC_LOAD>();
          Gather(a, raw(x), index, CreateMask<float, MaskPattern::VL1>());))
    FAULT("initcheck: which lanes are stored hangs on what was never written", "StoreAlign", REGISTERS(
          RegTensor<float> a, other; const MaskReg all = CreateMask<float>(); MaskReg mask; Duplicate(a, 1.0f);
          Compare<float, CMPMODE::GT>(mask, a, other, all);
          Or(mask, mask, bad ? CreateMask<float, MaskPattern::ALLF>() : all, all); StoreAlign(raw(x), a, mask);))
    FAULT("initcheck: a thread reads what was never written", "SIMT function", if (!bad) Duplicate(x, 1.0f, 8);
          asc_vf_call<add_one>(dim3(2), words(x));)
    FAULT("launchcheck: a tiling key that no branch serves: 7", "", TILING_KEY_IS(bad ? 8 : 7);)
    FAULT("launchcheck: CTRL[48] is not set back: later kernels compute otherwise", "SetCtrlSpr",
          const int64_t before = GetCtrlSpr<48, 48>(); SetCtrlSpr<48, 48>(1); if (!bad) SetCtrlSpr<48, 48>(before);)
    FAULT("launchcheck: the model does not have this function", "Floor", if (bad) Floor(y, x, 8);)
    FAULT("launchcheck: the tiling data are shorter than the kernel's struct", "",
          GET_TILING_DATA(data, (bad ? tiling + 8 : tiling));)
}

void races() {
    FAULT("racecheck: store by V is not ordered after the load by MTE3", "Duplicate",
          Duplicate(x, 1.0f, 8); all(); DataCopy(gy, x, 8);
          if (!bad) SetFlag<HardEvent::MTE3_V>(EVENT_ID0), WaitFlag<HardEvent::MTE3_V>(EVENT_ID0);
          Duplicate(x, 2.0f, 8);)
    FAULT("racecheck: load by V is not ordered after the store by MTE2", "Adds",
          if (bad) SetFlag<HardEvent::MTE2_V>(0); DataCopy(x, gx, 8);
          if (!bad) SetFlag<HardEvent::MTE2_V>(0); WaitFlag<HardEvent::MTE2_V>(0); Adds(y, x, 1.0f, 8);)
    FAULT("racecheck: store by MTE2 is not ordered after the store by V", "DataCopy", Duplicate(x, 1.0f, 8);
          if (!bad) DataSyncBarrier<MemDsbT::ALL>(); DataCopy(x, gx, 8);)
    FAULT("racecheck: store by MTE3 is not ordered after the store by MTE3", "DataCopy",
          Duplicate(x, 1.0f, 8); all(); DataCopy(gy, x, 8);
          if (!bad) PipeBarrier<PIPE_MTE3>(); DataCopy(gy, x, 8);)
    FAULT_UNSYNCED("racecheck: load by S is not ordered after the store by V, and the compiler adds no flags", "GetValue",
          Duplicate(x, 1.0f, 8);
          if (!bad) SetFlag<HardEvent::V_S>(0), WaitFlag<HardEvent::V_S>(0);
          x.GetValue(0);)
    FAULT_UNSYNCED("racecheck: store by MTE2 is not ordered after the store by S, and the compiler adds no flags", "DataCopy",
          x.SetValue(0, 1);
          if (!bad) SetFlag<HardEvent::S_MTE2>(0), WaitFlag<HardEvent::S_MTE2>(0);
          DataCopy(x, gx, 8);)
    FAULT("racecheck: store by V is not ordered after the load by MTE3: a queue", "Duplicate",
          TQue<TPosition::VECOUT, 1> queue; pipe.InitBuffer(queue, 1, 32); auto a = queue.AllocTensor<float>();
          Duplicate(a, 1.0f, 8); queue.EnQue(a); a = queue.DeQue<float>(); DataCopy(gy, a, 8);
          if (!bad) queue.FreeTensor(a), a = queue.AllocTensor<float>();
          Duplicate(a, 1.0f, 8); queue.FreeTensor(a);)
    FAULT_OF_CORES("racecheck: store and store of two cores, no SyncAll between", "SetValue",
          gy.SetValue(bad ? 0 : GetBlockIdx(), 1);)
    FAULT_OF_CORES("racecheck: load and store of two cores, no SyncAll between", "GetValue",
          if (!GetBlockIdx()) gw.SetValue(0, 1);
          if (!bad) SyncAll(); gw.GetValue(0);)
    FAULT_OF_CORES("racecheck: atomic addition and store of two cores, no SyncAll between", "DataCopy",
          Duplicate(x, 1.0f, 8); all();
          if (!GetBlockIdx()) DataCopy(gw, x, 8);
          if (!bad) SyncAll(); PipeBarrier<PIPE_MTE3>(); SetAtomicAdd<float>(); DataCopy(gw, x, 8);)
    FAULT("racecheck: UB is used while InitGlobalMemory still copies from it", "Duplicate",
          pipe.Reset(); InitGlobalMemory(gw, 8, 0);
          if (!bad) all(); Duplicate(x, 1.0f, 8);)
    FAULT("racecheck: a vector function loads what it stored before, no LocalMemBar between", "LoadAlign", REGISTERS(
          RegTensor<float> a; Duplicate(a, 1.0f); StoreAlign(raw(x), a, CreateMask<float>());
          if (!bad) LocalMemBar<MemType::VEC_STORE, MemType::VEC_LOAD>(); LoadAlign(a, raw(x));))
    FAULT("racecheck: store by MTE2 is not ordered after the load by V", "DataCopy", Duplicate(x, 1.0f, 16); all(); REGISTERS(
          RegTensor<float> a; UnalignRegForStore out; auto* to = raw(y); LoadAlign(a, raw(x) + 8);
          StoreUnAlign(to, a, out, bad ? 8 : 0); StoreUnAlignPost(to, out, 0);) DataCopy(x[8], gx, 8);)
    FAULT("racecheck: one Scatter has an index twice: one of the values is lost", "Scatter", REGISTERS(
          RegTensor<float> a; RegTensor<uint32_t> index; Duplicate(a, 1.0f); Arange(index, 0);
          if (bad) Duplicate(index, 3); Scatter(raw(x), a, index, CreateMask<float, MaskPattern::VL2>());))
    FAULT("racecheck: store and store of two threads, no __syncthreads between", "SIMT function",
          asc_vf_call<store_thread>(dim3(bad ? 2 : 1), words(x));)
    FAULT("racecheck: store and load of two threads, no __syncthreads between", "SIMT function", Duplicate(x, 1.0f, 8);
          bad ? asc_vf_call<share<false>>(dim3(2), words(x)) : asc_vf_call<share<true>>(dim3(2), words(x));)
}

void synchronisation() {
    FAULT("synccheck: __syncthreads that not every thread of the block reaches", "SIMT function",
          asc_vf_call<wait_for_half>(dim3(1 + bad), words(x));)
    FAULT_OF_CORES("synccheck: core 1 ends without this SyncAll: the others wait for ever", "SyncAll",
          if (!bad || !GetBlockIdx()) SyncAll();)
    FAULT("synccheck: SetFlag without WaitFlag", "SetFlag",
          SetFlag<HardEvent::V_S>(0); if (!bad) WaitFlag<HardEvent::V_S>(0);)
    FAULT("synccheck: WaitFlag of a flag that nothing sets: the pipe hangs", "WaitFlag",
          if (!bad) SetFlag<HardEvent::V_S>(0); WaitFlag<HardEvent::V_S>(0);)
    FAULT("synccheck: SetFlag of a flag that is set already: no WaitFlag between", "SetFlag",
          SetFlag<HardEvent::V_S>(0); SetFlag<HardEvent::V_S>(!bad);
          WaitFlag<HardEvent::V_S>(0); if (!bad) WaitFlag<HardEvent::V_S>(1);)
    FAULT("synccheck: an event id is not in 0 to 7", "SetFlag",
          SetFlag<HardEvent::V_S>(bad * 8); WaitFlag<HardEvent::V_S>(0);)
    FAULT("synccheck: no event id is left", "InitBuffer",
          for (int i = 0; i < 8 + bad; ++i) pipe.AllocEventID<HardEvent::V_S>();)
#define QUEUE TQue<TPosition::VECIN, 1> queue; pipe.InitBuffer(queue, 2, 512); auto a = queue.AllocTensor<float>();
    FAULT("synccheck: AllocTensor of a queue whose buffers are all taken: a hang", "AllocTensor",
          QUEUE queue.AllocTensor<float>();
          if (!bad) queue.FreeTensor(a); queue.AllocTensor<float>();)
    FAULT("synccheck: FreeTensor of what is not allocated", "FreeTensor", QUEUE queue.FreeTensor(bad ? x : a);)
    FAULT("synccheck: EnQue of a tensor that is not of the queue", "EnQue",
          QUEUE queue.EnQue(bad ? x : a); if (!bad) queue.DeQue<float>();)
    FAULT("synccheck: EnQue without DeQue at the end of the kernel", "EnQue",
          QUEUE queue.EnQue(a); if (!bad) queue.DeQue<float>();)
    FAULT("synccheck: DeQue of an empty queue", "DeQue", QUEUE if (!bad) queue.EnQue(a); queue.DeQue<float>();)
    FAULT("synccheck: EnQue beyond the depth of the queue", "EnQue", QUEUE queue.EnQue(a); if (!bad) queue.DeQue<float>();
          queue.EnQue(queue.AllocTensor<float>()); queue.DeQue<float>(); if (bad) queue.DeQue<float>();)
    FAULT("synccheck: InitGlobalMemory is called after InitBuffer", "InitGlobalMemory",
          if (!bad) pipe.Reset(); InitGlobalMemory(gw, 8, 0);)
}
}  // namespace

extern "C" void ascendc_entry(uint8_t** arguments) { chosen->kernel(arguments); }

// Answers how an output differs from the one worked by hand.
extern "C" const char* run(const char* name, int bad) {
    if (cases.empty()) {
        arithmetic(), casts(), copies(), registers(), threads_and_blocks();
        memory(), races(), synchronisation();
    }
    chosen = &cases.at(name), is_bad = bad;
    alignas(32) uint8_t memory[3][1024] = {};
    alignas(32) uint64_t tiling[4] = {0, 5, 0, 0};
    chosen->prepare(memory[0], nullptr);
    const uint32_t size = chosen->itemsize;
    const model::Buffer buffers[] = {{"x", memory[0], 1024, 4, model::input},
                                     {"y", memory[1], 1024, size, model::output},
                                     {"workspace", memory[2], 1024, size, model::workspace},
                                     {"tiling", reinterpret_cast<uint8_t*>(tiling), 32, 8, model::tiling}};
    const model::Launch launch{chosen->blocks, nullptr, 0, 7, ub_bytes, 0xa5, chosen->auto_sync, 4, buffers};
    return (wrong = ascendc_launch(&launch) ? "threads ran unwatched" : chosen->judge(nullptr, memory[1])).c_str();
}
