// The backward of max pooling as a scatter: each core takes every n-th plane, adds the gradients of its windows to the
// cells that their indices name, one after another, and stores the plane.
#include "kernel_operator.h"

struct ScatterTiling {
    uint32_t planes;
    uint32_t cells;
    uint32_t windows;
};

namespace {
constexpr uint32_t BLOCK = 32;  // bytes of a block of UB, of which copies are made

__aicore__ inline uint32_t RoundUp(uint32_t count, uint32_t size)
{
    return (count * size + BLOCK - 1) / BLOCK * BLOCK;
}

class Scatter {
public:
    __aicore__ inline void Init(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y, const ScatterTiling& tiling)
    {
        tiling_ = tiling;
        grad_.SetGlobalBuffer(reinterpret_cast<__gm__ DTYPE_GRAD*>(grad), tiling.planes * tiling.windows);
        argmax_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(argmax), tiling.planes * tiling.windows);
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ DTYPE_Y*>(y), tiling.planes * tiling.cells);
        pipe_.InitBuffer(gradQueue_, 1, RoundUp(tiling.windows, sizeof(DTYPE_GRAD)));
        pipe_.InitBuffer(argmaxQueue_, 1, RoundUp(tiling.windows, sizeof(int32_t)));
        pipe_.InitBuffer(yQueue_, 1, RoundUp(tiling.cells, sizeof(DTYPE_Y)));
    }

    __aicore__ inline void Process()
    {
        for (uint32_t plane = AscendC::GetBlockIdx(); plane < tiling_.planes; plane += AscendC::GetBlockNum()) {
            CopyIn(plane);
            Compute();
            CopyOut(plane);
        }
    }

private:
    __aicore__ inline void CopyIn(uint32_t plane)
    {
        auto grad = gradQueue_.AllocTensor<DTYPE_GRAD>();
        auto argmax = argmaxQueue_.AllocTensor<int32_t>();
        AscendC::DataCopyExtParams row{1, static_cast<uint32_t>(tiling_.windows * sizeof(DTYPE_GRAD)), 0, 0, 0};
        AscendC::DataCopyPad(grad, grad_[plane * tiling_.windows], row, AscendC::DataCopyPadExtParams<DTYPE_GRAD>{});
        row.blockLen = tiling_.windows * sizeof(int32_t);
        AscendC::DataCopyPad(argmax, argmax_[plane * tiling_.windows], row, AscendC::DataCopyPadExtParams<int32_t>{});
        gradQueue_.EnQue(grad);
        argmaxQueue_.EnQue(argmax);
    }

    __aicore__ inline void Compute()
    {
        auto grad = gradQueue_.DeQue<DTYPE_GRAD>();
        auto argmax = argmaxQueue_.DeQue<int32_t>();
        auto y = yQueue_.AllocTensor<DTYPE_Y>();
        AscendC::Duplicate(y, static_cast<DTYPE_Y>(0), tiling_.cells);
        auto cleared = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::V_S));
        AscendC::SetFlag<AscendC::HardEvent::V_S>(cleared);
        AscendC::WaitFlag<AscendC::HardEvent::V_S>(cleared);
        auto copied = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::MTE2_S));
        AscendC::SetFlag<AscendC::HardEvent::MTE2_S>(copied);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(copied);
        for (uint32_t window = 0; window < tiling_.windows; ++window) {
            const int32_t cell = argmax.GetValue(window);
            y.SetValue(cell, y.GetValue(cell) + grad.GetValue(window));
        }
        auto added = static_cast<event_t>(AscendC::GetTPipePtr()->FetchEventID(AscendC::HardEvent::S_MTE3));
        AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(added);
        AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(added);
        yQueue_.EnQue(y);
        gradQueue_.FreeTensor(grad);
        argmaxQueue_.FreeTensor(argmax);
    }

    __aicore__ inline void CopyOut(uint32_t plane)
    {
        auto y = yQueue_.DeQue<DTYPE_Y>();
        AscendC::DataCopyExtParams row{1, static_cast<uint32_t>(tiling_.cells * sizeof(DTYPE_Y)), 0, 0, 0};
        AscendC::DataCopyPad(y_[plane * tiling_.cells], y, row);
        yQueue_.FreeTensor(y);
    }

    ScatterTiling tiling_;
    AscendC::TPipe pipe_;
    AscendC::TQue<AscendC::TPosition::VECIN, 1> gradQueue_, argmaxQueue_;
    AscendC::TQue<AscendC::TPosition::VECOUT, 1> yQueue_;
    AscendC::GlobalTensor<DTYPE_GRAD> grad_;
    AscendC::GlobalTensor<int32_t> argmax_;
    AscendC::GlobalTensor<DTYPE_Y> y_;
};
}  // namespace

extern "C" __global__ __aicore__ void max_pool_backward_scatter(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y,
                                                                GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    Scatter kernel;
    kernel.Init(grad, argmax, y, data);
    kernel.Process();
}
