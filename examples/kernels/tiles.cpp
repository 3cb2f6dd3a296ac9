// The backward of max pooling by tiles, for A2 and A3: a tile is some rows of windows of a plane, and what it touches, some
// rows of cells. Where windows overlap so do the rows of two tiles, and cores add to them atomically (tiling key 0); else
// a tile's rows are its own and are stored (key 1). Sums are in float: in grad_input itself, or in the workspace.
#include "common.h"

struct TilesTiling {
    uint32_t planes;
    uint32_t rows;  // of cells, along the first axis
    uint32_t rowCells;
    uint32_t windowRows;  // of windows
    uint32_t rowWindows;
    uint32_t kernel;  // along the first axis
    uint32_t stride;
    uint32_t padding;
    uint32_t dilation;
    uint32_t tiles;  // of a plane; rows of windows of a tile
    uint32_t tileRows;
    uint32_t unitTiles;  // tiles that one core takes, one after another
    uint32_t pieceCells;
    uint32_t chunkWindows;
};

using Element = DTYPE_Y;
constexpr bool IS_FLOAT = AscendC::IsSameType<Element, float>::value;

template <bool isDisjoint>
class Tiles {
public:
    __aicore__ inline void Init(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y, GM_ADDR workspace, const TilesTiling& tiling)
    {
        tiling_ = tiling;
        total_ = static_cast<uint64_t>(tiling.planes) * tiling.rows * tiling.rowCells;
        grad_.SetGlobalBuffer(reinterpret_cast<__gm__ Element*>(grad));
        argmax_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(argmax));
        y_.SetGlobalBuffer(reinterpret_cast<__gm__ Element*>(y));
        sums_.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(IS_FLOAT ? y : AscendC::GetUserWorkspace(workspace)));
        pipe_.InitBuffer(gradQueue_, 2, BytesOf<Element>(tiling.chunkWindows));
        pipe_.InitBuffer(argmaxQueue_, 2, BytesOf<int32_t>(tiling.chunkWindows));
        pipe_.InitBuffer(pieceBuffer_, BytesOf<float>(tiling.pieceCells));
        pipe_.InitBuffer(narrowBuffer_, BytesOf<Element>(tiling.pieceCells));
    }

    __aicore__ inline void Process()
    {
        ClearSums();
        AscendC::SyncAll();
        const uint32_t tiles = tiling_.planes * tiling_.tiles, step = AscendC::GetBlockNum() * tiling_.unitTiles;
        for (uint32_t unit = AscendC::GetBlockIdx() * tiling_.unitTiles; unit < tiles; unit += step) {
            for (uint32_t tile = unit; tile < Smaller(unit + tiling_.unitTiles, tiles); ++tile) {
                ComputeTile(tile / tiling_.tiles, tile % tiling_.tiles * tiling_.tileRows);
            }
        }
        if constexpr (!IS_FLOAT) {
            AscendC::SyncAll();
            NarrowSums();
        }
    }

private:
    __aicore__ inline void ClearSums()
    {
        auto zeros = pieceBuffer_.Get<float>();
        AscendC::Duplicate(zeros, 0.0f, tiling_.pieceCells);
        Wait<AscendC::HardEvent::V_MTE3>();
        const uint64_t step = static_cast<uint64_t>(AscendC::GetBlockNum()) * tiling_.pieceCells;
        for (uint64_t at = AscendC::GetBlockIdx() * tiling_.pieceCells; at < total_; at += step) {
            AscendC::DataCopyPad(sums_[at], zeros, Row<float>(Smaller(tiling_.pieceCells, total_ - at)));
        }
    }

    // The windows from `row` on, and the cells that they reach, by pieces that fit into UB.
    __aicore__ inline void ComputeTile(uint32_t plane, uint32_t row)
    {
        const uint32_t rows = Smaller(tiling_.tileRows, tiling_.windowRows - row);
        const int64_t above = static_cast<int64_t>(row) * tiling_.stride - tiling_.padding;
        const int64_t below = above + (rows - 1) * tiling_.stride + (tiling_.kernel - 1) * tiling_.dilation + 1;
        const uint32_t end = below > 0 ? Smaller(below, tiling_.rows) * tiling_.rowCells : 0;
        for (uint32_t first = above > 0 ? above * tiling_.rowCells : 0; first < end; first += tiling_.pieceCells) {
            const uint32_t count = Smaller(tiling_.pieceCells, end - first);
            auto piece = pieceBuffer_.Get<float>();
            Wait<AscendC::HardEvent::MTE3_V>();
            AscendC::Duplicate(piece, 0.0f, count);
            Wait<AscendC::HardEvent::V_S>();
            const uint64_t windows = static_cast<uint64_t>(plane) * tiling_.windowRows + row;
            AddWindows(piece, first, count, windows * tiling_.rowWindows, rows * tiling_.rowWindows);
            Wait<AscendC::HardEvent::S_MTE3>();
            if constexpr (!isDisjoint) {
                AscendC::SetAtomicAdd<float>();
            }
            AscendC::DataCopyPad(sums_[static_cast<uint64_t>(plane) * tiling_.rows * tiling_.rowCells + first], piece,
                                 Row<float>(count));
            AscendC::SetAtomicNone();
        }
    }

    __aicore__ inline void AddWindows(const AscendC::LocalTensor<float>& piece, uint32_t first, uint32_t count,
                                      uint64_t offset, uint32_t windows)
    {
        for (uint32_t done = 0; done < windows; done += tiling_.chunkWindows) {
            const uint32_t chunk = Smaller(tiling_.chunkWindows, windows - done);
            auto grad = gradQueue_.AllocTensor<Element>();
            auto argmax = argmaxQueue_.AllocTensor<int32_t>();
            AscendC::DataCopyPad(grad, grad_[offset + done], Row<Element>(chunk), {});
            AscendC::DataCopyPad(argmax, argmax_[offset + done], Row<int32_t>(chunk), {});
            gradQueue_.EnQue(grad);
            argmaxQueue_.EnQue(argmax);
            grad = gradQueue_.DeQue<Element>();
            argmax = argmaxQueue_.DeQue<int32_t>();
            Wait<AscendC::HardEvent::MTE2_S>();
            for (uint32_t window = 0; window < chunk; ++window) {
                const uint32_t cell = static_cast<uint32_t>(argmax.GetValue(window)) - first;
                if (cell < count) {
                    piece.SetValue(cell, piece.GetValue(cell) + static_cast<float>(grad.GetValue(window)));
                }
            }
            Wait<AscendC::HardEvent::S_MTE2>();
            gradQueue_.FreeTensor(grad);
            argmaxQueue_.FreeTensor(argmax);
        }
    }

    __aicore__ inline void NarrowSums()
    {
        auto sums = pieceBuffer_.Get<float>();
        auto narrow = narrowBuffer_.Get<Element>();
        const uint64_t step = static_cast<uint64_t>(AscendC::GetBlockNum()) * tiling_.pieceCells;
        for (uint64_t at = AscendC::GetBlockIdx() * tiling_.pieceCells; at < total_; at += step) {
            const uint32_t count = Smaller(tiling_.pieceCells, total_ - at);
            AscendC::DataCopyPad(sums, sums_[at], Row<float>(count), {});
            Wait<AscendC::HardEvent::MTE2_V>();
            Wait<AscendC::HardEvent::MTE3_V>();
            AscendC::Cast(narrow, sums, AscendC::RoundMode::CAST_RINT, count);
            Wait<AscendC::HardEvent::V_MTE3>();
            Wait<AscendC::HardEvent::V_MTE2>();
            AscendC::DataCopyPad(y_[at], narrow, Row<Element>(count));
        }
    }

    TilesTiling tiling_;
    uint64_t total_;
    AscendC::TPipe pipe_;
    AscendC::TQue<AscendC::TPosition::VECIN, 2> gradQueue_, argmaxQueue_;
    AscendC::TBuf<AscendC::TPosition::VECCALC> pieceBuffer_, narrowBuffer_;
    AscendC::GlobalTensor<Element> grad_, y_;
    AscendC::GlobalTensor<int32_t> argmax_;
    AscendC::GlobalTensor<float> sums_;
};

extern "C" __global__ __aicore__ void max_pool_backward_tiles(GM_ADDR grad, GM_ADDR argmax, GM_ADDR y,
                                                              GM_ADDR workspace, GM_ADDR tiling)
{
    GET_TILING_DATA(data, tiling);
    if (TILING_KEY_IS(0)) {
        Tiles<false> kernel;
        kernel.Init(grad, argmax, y, workspace, data);
        kernel.Process();
    } else if (TILING_KEY_IS(1)) {
        Tiles<true> kernel;
        kernel.Init(grad, argmax, y, workspace, data);
        kernel.Process();
    }
}
