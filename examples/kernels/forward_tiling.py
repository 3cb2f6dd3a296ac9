"""How the forward is cut: rows of windows into chunks, and taps, so that the cells of one row fit into UB twice."""

from math import ceil


def tiling(call):
    def axes(values, missing):
        return (missing,) * (3 - len(values)) + tuple(values)

    batch, channels, *plane = call.shapes["x"]
    outputs = call.shapes["y"][2:]
    taps = min(call.kernel_size[-1], 12_287 // call.dilation[-1] + 1)
    reach = (taps - 1) * call.dilation[-1] + 1
    chunk = max(1, min(outputs[-1], 2048, (24_576 - reach) // call.stride[-1]))
    fields = {
        "planes": batch * channels,
        "size": axes(plane, 1),
        "out": axes(outputs, 1),
        "kernel": axes(call.kernel_size, 1),
        "stride": axes(call.stride, 1),
        "padding": axes(call.padding, 0),
        "dilation": axes(call.dilation, 1),
        "chunks": ceil(outputs[-1] / chunk),
        "chunkWindows": chunk,
        "taps": taps,
        "spanCells": min(plane[-1], (chunk - 1) * call.stride[-1] + reach),
    }
    rows = batch * channels * fields["out"][0] * fields["out"][1]
    return {"fields": fields, "blocks": min(rows * fields["chunks"], call.blocks)}
