#include "register/op_def_registry.h"
#include "register/tilingdata_base.h"
#include "tiling/platform/platform_ascendc.h"

BEGIN_TILING_DATA_DEF(ScatterTilingData)
TILING_DATA_FIELD_DEF(uint32_t, planes);
TILING_DATA_FIELD_DEF_ARR(uint32_t, 4, sizes);
END_TILING_DATA_DEF;

static ge::graphStatus Tiling(gert::TilingContext* context)
{
    const auto grad = context->GetInputShape(0)->GetStorageShape(), y = context->GetOutputShape(0)->GetStorageShape();
    const auto strides = context->GetAttrs()->GetListInt(1);
    const long stride = strides->GetData()[0];
    OP_CHECK_IF(stride > 2, OP_LOGE(context, "a stride of %ld", stride), return ge::GRAPH_FAILED);
    const auto platform = platform_ascendc::PlatformAscendC(context->GetPlatformInfo());
    const uint32_t cells = y.GetDim(2) * y.GetDim(3), windows = grad.GetDim(2) * grad.GetDim(3);
    ScatterTilingData data;
    data.set_planes(y.GetDim(0) * y.GetDim(1));
    const uint32_t sizes[4] = {cells, windows, cells, windows};
    data.set_sizes(sizes);
    data.SaveToBuffer(context->GetRawTilingData()->GetData(), context->GetRawTilingData()->GetCapacity());
    context->GetRawTilingData()->SetDataSize(data.GetDataSize());
    context->SetTilingKey(context->GetDeterministic() ? 7 : 8);
    context->SetBlockDim(std::min<uint32_t>(data.get_planes(), platform.GetCoreNumAiv()));
    context->GetWorkspaceSizes(1)[0] = 64;
    return ge::GRAPH_SUCCESS;
}
IMPL_OP_OPTILING(Scatter).Tiling(Tiling);
