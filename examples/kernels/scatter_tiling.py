"""How the scattering kernel is cut: planes are shared out to cores, and a plane is taken in tiles that UB holds."""

from math import prod


def tiling(call):
    batch, channels, *plane = call.shapes["y"]
    planes, cells, windows = batch * channels, prod(plane), prod(call.shapes["grad"][2:])
    tile, chunk = min(cells, call.ub_bytes // 8), min(windows, call.ub_bytes // 24)
    fields = {"planes": planes, "cells": cells, "windows": windows, "tile": tile, "chunk": chunk}
    return {"fields": fields, "blocks": min(planes, call.blocks)}
