"""How many cores the kernel of threads needs, and how many windows a thread takes."""

from math import ceil, prod

THREADS = 128


def tiling(call):
    batch, channels, *plane = call.shapes["y"]
    windows = prod(call.shapes["grad"][2:])
    fields = {
        "planes": batch * channels,
        "cells": prod(plane),
        "windows": windows,
        "together": windows if call.deterministic else 1,
    }
    return {"fields": fields, "blocks": min(ceil(batch * channels * windows / THREADS), call.blocks)}
