"""How the kernel by tiles is cut: as many tiles as keep all cores busy; all of a plane to one core if order matters."""

from math import ceil, prod


def tiling(call):
    batch, channels, rows, *row = call.shapes["y"]
    window_rows, *window_row = call.shapes["grad"][2:]
    kernel, stride, dilation = call.kernel_size[0], call.stride[0], call.dilation[0]
    planes = batch * channels
    tile_rows = ceil(window_rows / max(1, call.blocks // planes))
    tiles = ceil(window_rows / tile_rows)
    unit_tiles = tiles if call.deterministic else 1
    reach = (kernel - 1) * dilation + 1
    fields = {
        "planes": planes,
        "rows": rows,
        "rowCells": prod(row),
        "windowRows": window_rows,
        "rowWindows": prod(window_row),
        "kernel": kernel,
        "stride": stride,
        "padding": call.padding[0],
        "dilation": dilation,
        "tiles": tiles,
        "tileRows": tile_rows,
        "unitTiles": unit_tiles,
        "pieceCells": min(rows * prod(row), 16384),
        "chunkWindows": min(window_rows * prod(window_row), 2048),
    }
    return {
        "key": 1 if reach <= stride else 0,
        "fields": fields,
        "blocks": min(ceil(planes * tiles / unit_tiles), call.blocks),
        "workspace": 4 * planes * rows * prod(row),
    }
