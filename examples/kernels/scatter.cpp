// The backward of max pooling as a scatter: each core takes every n-th plane. It keeps a tile of the plane in UB, adds to
// it, one after another, the gradients of the windows whose indices name cells of the tile, and stores it.
#include "kernel_operator.h"

struct ScatterTiling {
    uint32_t planes;
    uint32_t cells;    // of a plane
    uint32_t windows;  // of a plane
    uint32_t tile;     // cells that UB holds at a time
    uint32_t chunk;    // windows that it holds at a time
};

namespace {
constexpr uint32_t BLOCK = 32;  // bytes of a block of UB, of which copies are made

__aicore__ inline uint32_t RoundUp(uint32_t count, uint32_t size)
{
    return (count * size + BLOCK - 1) / BLOCK * BLOCK;
}

template <AscendC::HardEvent EVENT> __aicore__ inline void Await()
{
    const auto id = static_cast<event_t>(GetTPipePtr()->FetchEventID(EVENT));
    AscendC::SetFlag<EVENT>(id);
    AscendC::WaitFlag<EVENT>(id);
}

class Scatter {
public:
    __aicore__ inline void Init(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y, const ScatterTiling& tiling)
    {
        tiling_ = tiling;
        grad_.SetGlobalBuffer(reinterpret_cast<__gm__ DTYPE_GRAD*>(grad));
        argmax_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(argmax));
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ DTYPE_Y*>(y));
        pipe_.InitBuffer(gradQueue_, 1, RoundUp(tiling.chunk, sizeof(DTYPE_GRAD)));
        pipe_.InitBuffer(argmaxQueue_, 1, RoundUp(tiling.chunk, sizeof(int32_t)));
        pipe_.InitBuffer(yQueue_, 1, RoundUp(tiling.tile, sizeof(DTYPE_Y)));
    }

    __aicore__ inline void Process()
    {
        for (uint64_t plane = AscendC::GetBlockIdx(); plane < tiling_.planes; plane += AscendC::GetBlockNum()) {
            for (uint32_t first = 0; first < tiling_.cells; first += tiling_.tile) {
                MakeTile(plane, first, Least(tiling_.tile, tiling_.cells - first));
            }
        }
    }

private:
    __aicore__ inline static uint32_t Least(uint32_t one, uint32_t other)
    {
        return one < other ? one : other;
    }

    __aicore__ inline void MakeTile(uint64_t plane, uint32_t first, uint32_t cells)
    {
        auto y = yQueue_.AllocTensor<DTYPE_Y>();
        AscendC::Duplicate(y, static_cast<DTYPE_Y>(0), cells);
        Await<AscendC::HardEvent::V_S>();
        for (uint32_t start = 0; start < tiling_.windows; start += tiling_.chunk) {
            const uint32_t windows = Least(tiling_.chunk, tiling_.windows - start);
            CopyIn(plane * tiling_.windows + start, windows);
            Add(y, first, cells, windows);
        }
        Await<AscendC::HardEvent::S_MTE3>();
        yQueue_.EnQue(y);
        CopyOut(plane * tiling_.cells + first, cells);
    }

    __aicore__ inline void CopyIn(uint64_t start, uint32_t windows)
    {
        auto grad = gradQueue_.AllocTensor<DTYPE_GRAD>();
        auto argmax = argmaxQueue_.AllocTensor<int32_t>();
        AscendC::DataCopyExtParams row{1, static_cast<uint32_t>(windows * sizeof(DTYPE_GRAD)), 0, 0, 0};
        AscendC::DataCopyPad(grad, grad_[start], row, AscendC::DataCopyPadExtParams<DTYPE_GRAD>{});
        row.blockLen = windows * sizeof(int32_t);
        AscendC::DataCopyPad(argmax, argmax_[start], row, AscendC::DataCopyPadExtParams<int32_t>{});
        gradQueue_.EnQue(grad);
        argmaxQueue_.EnQue(argmax);
    }

    __aicore__ inline void Add(const AscendC::LocalTensor<DTYPE_Y>& y, uint32_t first, uint32_t cells, uint32_t windows)
    {
        auto grad = gradQueue_.DeQue<DTYPE_GRAD>();
        auto argmax = argmaxQueue_.DeQue<int32_t>();
        Await<AscendC::HardEvent::MTE2_S>();
        for (uint32_t window = 0; window < windows; ++window) {
            const uint32_t cell = argmax.GetValue(window) - first;
            if (cell < cells) {
                y.SetValue(cell, y.GetValue(cell) + grad.GetValue(window));
            }
        }
        Await<AscendC::HardEvent::S_MTE2>();
        gradQueue_.FreeTensor(grad);
        argmaxQueue_.FreeTensor(argmax);
    }

    __aicore__ inline void CopyOut(uint64_t first, uint32_t cells)
    {
        auto y = yQueue_.DeQue<DTYPE_Y>();
        AscendC::DataCopyExtParams row{1, static_cast<uint32_t>(cells * sizeof(DTYPE_Y)), 0, 0, 0};
        AscendC::DataCopyPad(y_[first], y, row);
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
