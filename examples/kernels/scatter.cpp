// The backward of max pooling as a scatter, for A2 and A3: a core takes a piece of a plane into UB, adds the gradients of
// all windows whose indices lie in it, one after another, and stores it. No two cores share a cell.
#include "common.h"

struct ScatterTiling {
    uint32_t planes;
    uint32_t cells;    // of a plane
    uint32_t windows;  // of a plane
    uint32_t pieces;   // of a plane
    uint32_t pieceCells;
    uint32_t chunkWindows;
};

class Scatter {
public:
    __aicore__ inline void Init(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y, const ScatterTiling& tiling)
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
        for (uint32_t unit = AscendC::GetBlockIdx(); unit < tiling_.planes * tiling_.pieces;
             unit += AscendC::GetBlockNum()) {
            const uint32_t plane = unit / tiling_.pieces;
            const uint32_t first = unit % tiling_.pieces * tiling_.pieceCells;
            ComputePiece(plane, first, Smaller(tiling_.pieceCells, tiling_.cells - first));
        }
    }

private:
    __aicore__ inline void ComputePiece(uint32_t plane, uint32_t first, uint32_t count)
    {
        auto y = yQueue_.AllocTensor<float>();
        AscendC::Duplicate(y, 0.0f, count);
        Wait<AscendC::HardEvent::V_S>();
        for (uint32_t window = 0; window < tiling_.windows; window += tiling_.chunkWindows) {
            const uint32_t windows = Smaller(tiling_.chunkWindows, tiling_.windows - window);
            CopyIn(plane, window, windows);
            Add(y, first, count, windows);
        }
        Wait<AscendC::HardEvent::S_MTE3>();
        yQueue_.EnQue(y);
        y = yQueue_.DeQue<float>();
        AscendC::DataCopyPad(y_[static_cast<uint64_t>(plane) * tiling_.cells + first], y, Row<float>(count));
        yQueue_.FreeTensor(y);
    }

    __aicore__ inline void CopyIn(uint32_t plane, uint32_t window, uint32_t windows)
    {
        const uint64_t offset = static_cast<uint64_t>(plane) * tiling_.windows + window;
        auto grad = gradQueue_.AllocTensor<float>();
        auto argmax = argmaxQueue_.AllocTensor<int32_t>();
        AscendC::DataCopyPad(grad, grad_[offset], Row<float>(windows), AscendC::DataCopyPadExtParams<float>{});
        AscendC::DataCopyPad(argmax, argmax_[offset], Row<int32_t>(windows), AscendC::DataCopyPadExtParams<int32_t>{});
        gradQueue_.EnQue(grad);
        argmaxQueue_.EnQue(argmax);
    }

    __aicore__ inline void Add(const AscendC::LocalTensor<float>& y, uint32_t first, uint32_t count, uint32_t windows)
    {
        auto grad = gradQueue_.DeQue<float>();
        auto argmax = argmaxQueue_.DeQue<int32_t>();
        Wait<AscendC::HardEvent::MTE2_S>();
        for (uint32_t window = 0; window < windows; ++window) {
            const uint32_t cell = static_cast<uint32_t>(argmax.GetValue(window)) - first;  // wraps where it is before
            if (cell < count) {
                y.SetValue(cell, y.GetValue(cell) + grad.GetValue(window));
            }
        }
        Wait<AscendC::HardEvent::S_MTE2>();
        gradQueue_.FreeTensor(grad);
        argmaxQueue_.FreeTensor(argmax);
    }

    ScatterTiling tiling_;
    AscendC::TPipe pipe_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> gradQueue_, argmaxQueue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> yQueue_;
    AscendC::GlobalTensor<float> grad_, y_;
    AscendC::GlobalTensor<int32_t> argmax_;
};

extern "C" __global__ __aicore__ void max_pool_backward_scatter(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y,
                                                                GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    Scatter kernel;
    kernel.Init(grad, argmax, y, data);
    kernel.Process();
}
