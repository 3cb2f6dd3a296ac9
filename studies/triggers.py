"""Conditions on calls that trigger seeded defects, with the words that name them.

They were written down from the table of defects, before the first sentence about them was read. For four of them the
table says less than the switch does, which the sentences told: `stride_field_wraps` moves adaptive windows, too,
`compares_rounded_data` compares every dtype so, `output_strides_ignored` and `gaps_overwritten` are about the outputs
of forwards as well. A defect that is not here is brought about by what no row tells: a gradient in one cell, a race,
what an earlier call has left behind. Three that any call shows are named by the check that they break. Five patterns
were widened after sentences were read: "tagged" names NHWC, a route of adaptive windows those, window bounds that
float32 rounds the lengths whose ratio it rounds, repeated cells an expanded axis, opposite infinities infinite ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_HALF = "half precision|float16|dtype"
_FORWARD = "a forward|operator|maximum|index_rule|index_points"
_KEPT, _STREAMS, _MODES = "memory_kept", "streams", "modes"
_CHECKS = (_FORWARD, _KEPT, _STREAMS, _MODES)
"""Parts that the checks which fail may say as well."""

_PLANES = r"N\*C|\bN\b|\bC\b|planes|elements"


@dataclass(frozen=True)
class Trigger:
    """A condition on the call; ``parts`` are patterns, one for each of its parts, of what may be said to name it."""

    condition: str
    parts: tuple[str, ...]

    def is_named_by(self, terms: Sequence[str], fails: str) -> bool:
        """Tell whether the terms of a condition have one of the words for each part.

        What only a check shows, ``fails`` may name as well, as that a call is a forward: it lists those that fail.
        """
        said = ", ".join(terms)
        return all(re.search(part, f"{said}, {fails}" if part in _CHECKS else said) for part in self.parts)


def _when(condition: str, *parts: str) -> Trigger:
    return Trigger(condition, parts)


TRIGGERS = {
    "decode_by_output_width": _when("W_out != W", "windows per row|stride|W"),
    "decode_by_padded_width": _when("padding along W > 0", "padding"),
    "extents_exchanged": _when("H != W", "H unlike W|differ"),
    "gradient_of_first_plane": _when("N*C > 1", _PLANES),
    "plane_offset_dropped": _when("N*C > 1, a route that scatters", _PLANES, "route"),
    "stride_of_last_axis": _when("strides that differ by axis", "stride that differs|stride"),
    "index_in_padded_plane": _when("padding > 0, a forward", "padding", _FORWARD),
    "channels_last_batch_order": _when("NHWC, N > 1, C > 1", "NHWC|nhwc|tagged"),
    "uint16_plane_index": _when("D*H*W > 65,536", "plane cells|elements|^[HWD] "),
    "uint16_plane_counter": _when("N*C >= 65,536", r"N\*C|\bC\b|\bN\b"),
    "repeat_counter_wraps": _when("W_out > 255", "windows per"),
    "stride_field_wraps": _when("stride along W >= 32, or adaptive windows", "stride|[aA]daptive|output"),
    "uint8_window_offset": _when("kernel cells > 256, a forward", "kernel"),
    "kernel_field_wraps": _when("kernel >= 1,024 along an axis", "kernel"),
    "assign_not_accumulate": _when("two windows choose one cell", "overlapping|stride|gradients in one cell"),
    "half_accumulator": _when(
        "half precision, three gradients in a cell",
        _HALF,
        "gradients in one cell|overlapping|several windows on one cell|inexact sums",
    ),
    "phases_rounded_down": _when("kernel > stride, kernel mod stride != 0", "multiple|overlapping"),
    "upsampling_assigns": _when("adaptive, output > input", "longer|overlapping"),
    "unwritten_tail": _when("elements mod 16 != 0", "mod"),
    "plane_tail_dropped": _when("N*C > 64, N*C mod 64 != 0", r"N\*C"),
    "width_tail_dropped": _when("W_out > 64, W_out mod 64 != 0", "windows per row"),
    "row_tail_not_flushed": _when("tile of W > 8, W mod 8 != 0", "W mod|W >=|tile"),
    "padded_lane_adds": _when("W_out mod 8 != 0", "windows per row"),
    "wide_lanes_halved": _when("N*C mod 32 > 16", r"N\*C"),
    "overhang_reads_next_row": _when("a window beyond the row's end", "beyond"),
    "adaptive_windows_of_one_size": _when("adaptive, output does not divide the input", "divide"),
    "last_ceil_window_dropped": _when("ceil_mode, a window beyond the input", "ceil_mode"),
    "ceil_clip_missing": _when("ceil_mode, last window begins beyond the input", "ceil_mode"),
    "overhang_read_as_zero": _when("a forward, a window beyond the input", "beyond|padding", _FORWARD),
    "dilation_blind_overlap": _when("kernel <= stride < dilated kernel", "dilat|stride >= kernel"),
    "dilation_of_first_axis": _when("dilations that differ by axis", "dilation that differs|dilation along"),
    "dilation_blind_phases": _when("dilation > 1, windows that meet", "dilat"),
    "nan_dropped": _when("a NaN gradient", "gradients with NaN"),
    "opposite_infinities_cancel": _when("infinite gradients", "gradients with infinities|opposite infinities"),
    "nan_loses": _when("NaN in self", "values with NaN"),
    "minus_infinity_unset": _when("self of -inf", "values with infinities"),
    "last_maximum_wins": _when("equal maxima, a forward", "^ties|forward"),
    "first_nan_wins": _when("several NaN in self", "values with NaN"),
    "argmax_recomputed": _when("indices that are not the forward's", "indices other than"),
    "compares_rounded_data": _when("not bfloat16, a forward", "float32|bfloat16", _FORWARD),
    "bfloat16_truncated": _when("bfloat16", "bfloat16"),
    "bfloat16_through_float16": _when("bfloat16", "bfloat16"),
    "float16_half_away": _when("float16", "float16"),
    "float16_subnormals_flushed": _when("float16", "float16"),
    "int64_read_as_int32": _when("int64 indices", "int64"),
    "float32_as_tf32": _when("float32", "float32"),
    "gradient_strides_ignored": _when("a strided gradOutput", "grad_output"),
    "indices_strides_ignored": _when("strided indices", "indices"),
    "zero_stride_advances": _when("an expanded input", "expanded|layout"),
    "offset_ignored": _when("indices with an offset", "offset of indices|layout of indices"),
    "offset_in_bytes": _when("gradOutput with an offset", "offset of grad_output|layout of grad_output"),
    "output_strides_ignored": _when("a strided output", "grad_input|output"),
    "gaps_overwritten": _when("an output with gaps", "grad_input|output"),
    "expanded_plane_ignored": _when("an input expanded along D, H or W", "expanded|layout|repeated"),
    "plane_gap_ignored": _when("a gap between planes", "layout|strided"),
    "narrowed_rows_lost": _when("a strided input with an offset", "layout|offset"),
    "merged_rows_collide": _when("NHWC, few channels, overlap along H", "NHWC|nhwc"),
    "empty_refused": _when("N = 0", "empty|N <|N ="),
    "half_padding_refused": _when("even kernel, padding = kernel / 2", "half|padding"),
    "unbatched_refused": _when("no N", "batch axis|rank"),
    "determinism_ignored": _when("determinism on", "deterministic"),
    "deterministic_width_tail": _when("determinism on, W_out mod 8 != 0", "deterministic"),
    "order_by_address": _when("determinism on", "deterministic"),
    "simt_count_wraps": _when("256 windows in a plane", "windows per plane = 256|windows"),
    "unit_kernel_ignores_stride": _when("kernel 1, stride > 1", "kernel of one|kernel"),
    "crash_on_uneven_cores": _when("N*C mod cores = 1", r"N\*C"),
    "write_past_output": _when("bytes of gradInput mod 32 != 0", "mod 32|mod 16|mod 8"),
    "indices_made_global": _when("N*C > 1", _PLANES),
    "zero_stride_accepted": _when("a stride of 0", "clause|stride"),
    "null_result_as_invalid": _when("a null gradInput", "clause|null"),
    "uint32_indices_accepted": _when("UINT32 indices", "clause|dtype of indices"),
    "leak_per_call": _when("any call", _KEPT),
    "first_stream_kept": _when("a second stream with work on it", _STREAMS),
    "workspace_address_kept": _when("a repeated executor with another workspace", _MODES),
    "index_taken_as_window_local": _when("a window of several cells", "kernel|window"),
    "batch_gap_ignored": _when("a gap behind each batch of an input", "gap|layout|strided|contiguous"),
    "infinity_saturated": _when("an infinite float16 gradient", "float16", "infinit"),
    "cut_kernel_last_slab_lost": _when("the geometry of the cut kernel template", "cut kernel|route|kernel cells"),
    "adaptive_window_in_float": _when("adaptive, lengths whose ratio float32 rounds", "adaptive|output|float32 rounds"),
    "planes_lost_past_2_20": _when("2^20 elements before a plane", "elements|cells|N"),
    "hang_on_idle_core": _when(
        "a scratch area and fewer tiles than cores", "scratch|route", r"tiles|N\*C|planes|cores"
    ),
    "dilation_accepted": _when("dilation 2 in 2-D", "clause|dilation"),
}
"""By the id of the defect."""
