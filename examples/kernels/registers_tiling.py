"""How the kernel on registers is cut: into pieces of planes, and rows of windows into chunks."""

from math import ceil, prod


def tiling(call):
    batch, channels, *plane = call.shapes["y"]
    *rows, row_windows = call.shapes["grad"][2:]
    reach = (call.kernel_size[-1] - 1) * call.dilation[-1] + 1
    chunk = min(row_windows, 4096)
    cells = prod(plane)
    piece = min(cells, 32768)
    fields = {
        "planes": batch * channels,
        "cells": cells,
        "rows": prod(rows),
        "rowWindows": row_windows,
        "apart": min(ceil(reach / call.stride[-1]), chunk),
        "pieces": ceil(cells / piece),
        "pieceCells": piece,
        "chunkWindows": chunk,
    }
    return {"fields": fields, "blocks": min(batch * channels * fields["pieces"], call.blocks)}
