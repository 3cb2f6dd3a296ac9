// Max pooling with argmax on the registers of 950: a core takes windows of one row of the output, and goes with all of them
// through the rows of cells that they reach, tap by tap. What is greater than the maximum so far, or NaN, replaces it.
#include "common.h"

struct ForwardTiling {
    uint32_t planes;
    uint32_t size[3];  // of a plane: depth, height, width
    uint32_t out[3];  // windows along each axis
    int32_t kernel[3];
    int32_t stride[3];
    int32_t padding[3];
    int32_t dilation[3];
    uint32_t chunks;  // of a row of windows
    uint32_t chunkWindows;
    uint32_t taps;  // along a row, that are taken at a time
    uint32_t spanCells;  // of a row of cells, that so many taps of the windows of a chunk reach
};

using namespace AscendC;

constexpr uint32_t LANES = 64;

template <class T>
__aicore__ inline void Replace(MicroAPI::RegTensor<T>& kept, MicroAPI::RegTensor<T>& value, MicroAPI::MaskReg& where)
{
    MicroAPI::Select(kept, value, kept, where);
}

// Some taps of one row of `width` cells; `shift` is where the first window's first of them is, `place` the index of its
// first cell.
__aicore__ inline void TakeRow(__local_mem__ float* best, __local_mem__ int32_t* index, __local_mem__ float* row,
                               int32_t width, int32_t shift, int32_t place, uint32_t windows, int32_t taps,
                               const ForwardTiling& t)
{
    __VEC_SCOPE__
    {
        MicroAPI::RegTensor<float> kept, value;
        MicroAPI::RegTensor<int32_t> keptCell, column, cell, none, end;
        MicroAPI::MaskReg all = MicroAPI::CreateMask<int32_t, MicroAPI::MaskPattern::ALL>();
        MicroAPI::MaskReg inside, greater, nan, first;
        MicroAPI::Duplicate(none, 0, all);
        MicroAPI::Duplicate(end, width, all);
        for (uint32_t begin = 0, left = windows; begin < windows; begin += LANES) {
            MicroAPI::MaskReg active = MicroAPI::UpdateMask<float>(left);
            MicroAPI::DataCopy(kept, best + begin);
            MicroAPI::DataCopy(keptCell, index + begin);
            for (int32_t tap = 0; tap < taps; ++tap) {
                MicroAPI::Arange(column, static_cast<int32_t>(begin));
                MicroAPI::Muls(column, column, t.stride[2], all);
                MicroAPI::Adds(column, column, shift + tap * t.dilation[2], all);
                MicroAPI::Compare<int32_t, CMPMODE::GE>(inside, column, none, active);
                MicroAPI::Compare<int32_t, CMPMODE::LT>(inside, column, end, inside);
                MicroAPI::DataCopyGather(value, row, (MicroAPI::RegTensor<uint32_t>&)column, inside);
                MicroAPI::Adds(cell, column, place, all);
                MicroAPI::Compare<float, CMPMODE::GT>(greater, value, kept, inside);
                MicroAPI::Compare<float, CMPMODE::NE>(nan, value, value, inside);
                MicroAPI::Compare<int32_t, CMPMODE::LT>(first, keptCell, none, inside);
                Replace(keptCell, cell, greater);
                Replace(keptCell, cell, nan);
                Replace(keptCell, cell, first);
                Replace(kept, value, greater);
                Replace(kept, value, nan);
            }
            MicroAPI::DataCopy(best + begin, kept, active);
            MicroAPI::DataCopy(index + begin, keptCell, active);
        }
    }
}

class Forward {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, GM_ADDR argmax, const ForwardTiling& tiling)
    {
        tiling_ = tiling;
        x_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(x));
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y));
        argmax_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(argmax));
        pipe_.InitBuffer(rowQueue_, 2, BytesOf<float>(tiling.spanCells));
        pipe_.InitBuffer(yQueue_, 1, BytesOf<float>(tiling.chunkWindows));
        pipe_.InitBuffer(argmaxQueue_, 1, BytesOf<int32_t>(tiling.chunkWindows));
    }

    __aicore__ inline void Process()
    {
        const uint32_t rows = tiling_.planes * tiling_.out[0] * tiling_.out[1];
        for (uint32_t unit = GetBlockIdx(); unit < rows * tiling_.chunks; unit += GetBlockNum()) {
            ComputeChunk(unit / tiling_.chunks, unit % tiling_.chunks * tiling_.chunkWindows);
        }
    }

private:
    __aicore__ inline void ComputeChunk(uint32_t row, uint32_t window)
    {
        const ForwardTiling& t = tiling_;
        const uint32_t windows = Smaller(t.chunkWindows, t.out[2] - window);
        const uint64_t plane = row / (t.out[0] * t.out[1]);
        const int32_t depth = static_cast<int32_t>(row / t.out[1] % t.out[0]) * t.stride[0] - t.padding[0];
        const int32_t height = static_cast<int32_t>(row % t.out[1]) * t.stride[1] - t.padding[1];
        const int32_t width = static_cast<int32_t>(window) * t.stride[2] - t.padding[2];
        auto y = yQueue_.AllocTensor<float>();
        auto argmax = argmaxQueue_.AllocTensor<int32_t>();
        Duplicate(y, -__builtin_inff(), windows);
        Duplicate(argmax, -1, windows);
        for (int32_t tap = 0; tap < t.kernel[0] * t.kernel[1]; ++tap) {
            const int32_t d = depth + tap / t.kernel[1] * t.dilation[0], h = height + tap % t.kernel[1] * t.dilation[1];
            if (d < 0 || d >= t.size[0] || h < 0 || h >= t.size[1]) {
                continue;
            }
            const uint32_t cells = (d * t.size[1] + h) * t.size[2];
            for (int32_t first = 0; first < t.kernel[2]; first += t.taps) {
                const int32_t taps = Smaller(t.taps, t.kernel[2] - first);
                TakeTaps(y, argmax, plane, cells, width + first * t.dilation[2], taps, windows);
            }
        }
        yQueue_.EnQue(y);
        argmaxQueue_.EnQue(argmax);
        y = yQueue_.DeQue<float>();
        argmax = argmaxQueue_.DeQue<int32_t>();
        DataCopyPad(y_[static_cast<uint64_t>(row) * t.out[2] + window], y, Row<float>(windows));
        DataCopyPad(argmax_[static_cast<uint64_t>(row) * t.out[2] + window], argmax, Row<int32_t>(windows));
        yQueue_.FreeTensor(y);
        argmaxQueue_.FreeTensor(argmax);
    }

    // So many taps of the windows in a row whose first cell has the index `row`; `left` is the first tap of the first window.
    __aicore__ inline void TakeTaps(LocalTensor<float>& y, LocalTensor<int32_t>& argmax, uint64_t plane, uint32_t row,
                                    int32_t left, int32_t taps, uint32_t windows)
    {
        const ForwardTiling& t = tiling_;
        const int32_t right = left + (windows - 1) * t.stride[2] + (taps - 1) * t.dilation[2] + 1;
        const int32_t begin = left > 0 ? left : 0, end = right > 0 ? Smaller(right, t.size[2]) : 0;
        if (begin >= end) {
            return;
        }
        auto cells = rowQueue_.AllocTensor<float>();
        DataCopyPad(cells, x_[plane * t.size[0] * t.size[1] * t.size[2] + row + begin], Row<float>(end - begin), {});
        rowQueue_.EnQue(cells);
        cells = rowQueue_.DeQue<float>();
        TakeRow((__local_mem__ float*)y.GetPhyAddr(), (__local_mem__ int32_t*)argmax.GetPhyAddr(),
                (__local_mem__ float*)cells.GetPhyAddr(), end - begin, left - begin, row + begin, windows, taps, t);
        rowQueue_.FreeTensor(cells);
    }

    ForwardTiling tiling_;
    TPipe pipe_;
    TQue<TPosition::VECIN, 2> rowQueue_;
    TQue<TPosition::VECOUT, 1> yQueue_, argmaxQueue_;
    GlobalTensor<float> x_, y_;
    GlobalTensor<int32_t> argmax_;
};

extern "C" __global__ __aicore__ void max_pool_forward(GM_ADDR x, GM_ADDR y, GM_ADDR argmax, GM_ADDR workspace,
                                                       GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    Forward kernel;
    kernel.Init(x, y, argmax, data);
    kernel.Process();
}
