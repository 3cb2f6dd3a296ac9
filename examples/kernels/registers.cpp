// The backward of max pooling on the registers of 950: a core takes a piece of a plane into UB and adds to it what 64
// windows of a row give at a time. Windows that share cells must not meet in one Scatter, which keeps one of their values
// only: a vector takes every `apart`-th window of a row, so many apart that two of them have no cell in common.
#include "common.h"

struct RegistersTiling {
    uint32_t planes;
    uint32_t cells;  // of a plane
    uint32_t rows;  // of windows of a plane
    uint32_t rowWindows;
    uint32_t apart;
    uint32_t pieces;  // of a plane
    uint32_t pieceCells;
    uint32_t chunkWindows;
};

using namespace AscendC;

constexpr uint32_t LANES = 64;

__aicore__ inline void AddChunk(__local_mem__ float* y, __local_mem__ float* grad, __local_mem__ int32_t* argmax,
                                int32_t first, int32_t count, int32_t windows, uint32_t apart)
{
    __VEC_SCOPE__
    {
        MicroAPI::RegTensor<float> sum, term;
        MicroAPI::RegTensor<int32_t> window, cell, none, end, last;
        MicroAPI::MaskReg all = MicroAPI::CreateMask<int32_t, MicroAPI::MaskPattern::ALL>(), taken, below;
        MicroAPI::Duplicate(none, 0, all);
        MicroAPI::Duplicate(end, count, all);
        MicroAPI::Duplicate(last, windows, all);
        for (uint16_t phase = 0; phase < static_cast<uint16_t>(apart); ++phase) {
            for (int32_t begin = phase; begin < windows; begin += LANES * apart) {
                MicroAPI::Arange(window, 0);
                MicroAPI::Muls(window, window, static_cast<int32_t>(apart), all);
                MicroAPI::Adds(window, window, begin, all);
                MicroAPI::Compare<int32_t, CMPMODE::LT>(taken, window, last, all);
                MicroAPI::DataCopyGather(cell, argmax, (MicroAPI::RegTensor<uint32_t>&)window, taken);
                MicroAPI::DataCopyGather(term, grad, (MicroAPI::RegTensor<uint32_t>&)window, taken);
                MicroAPI::Adds(cell, cell, -first, taken);
                MicroAPI::Compare<int32_t, CMPMODE::LT>(below, cell, end, taken);
                MicroAPI::Compare<int32_t, CMPMODE::GE>(taken, cell, none, below);
                MicroAPI::DataCopyGather(sum, y, (MicroAPI::RegTensor<uint32_t>&)cell, taken);
                MicroAPI::Add(sum, sum, term, taken);
                MicroAPI::DataCopyScatter(y, sum, (MicroAPI::RegTensor<uint32_t>&)cell, taken);
                MicroAPI::LocalMemBar<MicroAPI::MemType::VEC_STORE, MicroAPI::MemType::VEC_LOAD>();
            }
        }
    }
}

class Registers {
public:
    __aicore__ inline void Init(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y, const RegistersTiling& tiling)
    {
        tiling_ = tiling;
        grad_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(grad));
        argmax_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(argmax));
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(y));
        pipe_.InitBuffer(gradQueue_, 2, BytesOf<float>(tiling.chunkWindows));
        pipe_.InitBuffer(argmaxQueue_, 2, BytesOf<int32_t>(tiling.chunkWindows));
        pipe_.InitBuffer(yQueue_, 1, BytesOf<float>(tiling.pieceCells));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t unit = GetBlockIdx(); unit < tiling_.planes * tiling_.pieces; unit += GetBlockNum()) {
            const uint64_t plane = unit / tiling_.pieces;
            const uint32_t first = unit % tiling_.pieces * tiling_.pieceCells;
            const uint32_t count = Smaller(tiling_.pieceCells, tiling_.cells - first);
            auto y = yQueue_.AllocTensor<float>();
            Duplicate(y, 0.0f, count);
            for (uint32_t row = 0; row < tiling_.rows; ++row) {
                for (uint32_t window = 0; window < tiling_.rowWindows; window += tiling_.chunkWindows) {
                    AddWindows(y, first, count, (plane * tiling_.rows + row) * tiling_.rowWindows + window,
                               Smaller(tiling_.chunkWindows, tiling_.rowWindows - window));
                }
            }
            yQueue_.EnQue(y);
            y = yQueue_.DeQue<float>();
            DataCopyPad(y_[plane * tiling_.cells + first], y, Row<float>(count));
            yQueue_.FreeTensor(y);
        }
    }

private:
    __aicore__ inline void AddWindows(const LocalTensor<float>& y, uint32_t first, uint32_t count, uint64_t offset,
                                      uint32_t windows)
    {
        auto grad = gradQueue_.AllocTensor<float>();
        auto argmax = argmaxQueue_.AllocTensor<int32_t>();
        DataCopyPad(grad, grad_[offset], Row<float>(windows), DataCopyPadExtParams<float>{});
        DataCopyPad(argmax, argmax_[offset], Row<int32_t>(windows), DataCopyPadExtParams<int32_t>{});
        gradQueue_.EnQue(grad);
        argmaxQueue_.EnQue(argmax);
        grad = gradQueue_.DeQue<float>();
        argmax = argmaxQueue_.DeQue<int32_t>();
        AddChunk((__local_mem__ float*)y.GetPhyAddr(), (__local_mem__ float*)grad.GetPhyAddr(),
                 (__local_mem__ int32_t*)argmax.GetPhyAddr(), first, count, windows, tiling_.apart);
        gradQueue_.FreeTensor(grad);
        argmaxQueue_.FreeTensor(argmax);
    }

    RegistersTiling tiling_;
    TPipe pipe_;
    TQue<TPosition::VECIN, 2> gradQueue_, argmaxQueue_;
    TQue<TPosition::VECOUT, 1> yQueue_;
    GlobalTensor<float> grad_, y_;
    GlobalTensor<int32_t> argmax_;
};

extern "C" __global__ __aicore__ void max_pool_backward_registers(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y,
                                                                  GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    Registers kernel;
    kernel.Init(grad, argmax, y, data);
    kernel.Process();
}
