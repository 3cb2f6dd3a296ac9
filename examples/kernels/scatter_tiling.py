"""How the scattering kernel is cut: into pieces of a plane that fit into UB, beside two chunks of its windows."""

from math import ceil, prod


def tiling(call):
    batch, channels, *plane = call.shapes["y"]
    cells, windows = prod(plane), prod(call.shapes["grad"][2:])
    chunk = min(windows, 2048)
    piece = min(cells, call.ub_bytes // 4 - 4 * chunk - 512)
    fields = {
        "planes": batch * channels,
        "cells": cells,
        "windows": windows,
        "pieces": ceil(cells / piece),
        "pieceCells": piece,
        "chunkWindows": chunk,
    }
    return {"fields": fields, "blocks": min(batch * channels * fields["pieces"], call.blocks)}
