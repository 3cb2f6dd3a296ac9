"""Where the gate of the score finds each seeded defect that takes it long, and what it does not ask of."""

from __future__ import annotations

LATE = {
    "planes_lost_past_2_20",
    "planes_lost_past_2_24",
    "float32_plane_index",
    "uint16_plane_counter",
    "staging_leaked",
    "batch_gap_ignored",
    "strided_inputs_copied_at_once",
    "tiling_key_lacks_padding",
}
"""Defects that the first round of the smoke plan is too small to find."""

RACING = {"determinism_ignored", "nonatomic_core_add", "scratch_shared_by_streams"}
"""Defects that take two threads to meet: whether they show in so few cases is a matter of luck."""

OF_VARIED_CALLS = {
    "AdaptiveMaxPool2d": {"channels_last_tag_refused": ("legal", "")},
    "AdaptiveMaxPool3d": {"output_size_of_one_accepted": ("variations-2", "adaptive3d-fwd.length.outputSize")},
    "AdaptiveMaxPool3dBackward": {
        "half_gradient_of_bfloat16_accepted": ("variations-6", "adaptive3d-bwd.dtype.gradOutput"),
        "indices_depth_unchecked": ("variations-0", "adaptive3d-bwd.shape.indices"),
        "rank_without_channels_accepted": ("variations-0", "adaptive3d-bwd.rank"),
    },
    "MaxPool2dWithIndices": {
        "empty_dilation_accepted": ("variations-0", "2d-fwd.length.dilation"),
        "kernel_narrowed": ("variations-0", "2d-fwd.shape.pooled"),
    },
    "MaxPool2dWithIndicesBackward": {
        "dtypes_checked_late": ("pairs", "2d-bwd.dtype.self"),
        "kernel_beyond_input_accepted": ("variations-0", "2d-bwd.shape.pooled"),
        "null_lists_checked_late": ("pairs", "2d-bwd.null.kernelSize"),
        "rank_two_indices_accepted": ("variations-0", "2d-bwd.rank.indices"),
    },
    "MaxPool2dWithMaskBackward": {"stride_of_four_accepted_2d": ("variations-0", "mask-bwd.length.stride")},
    "MaxPool3dWithArgmax": {"complex64_accepted": ("variations-0", "3d-fwd.dtype.self")},
    "MaxPool3dWithArgmaxBackward": {
        "first_padding_unchecked": ("variations-0", "3d-bwd.padding.not-negative"),
        "float_gradient_of_half_accepted": ("variations-0", "3d-bwd.dtype.gradOutput"),
        "new_private_tag_accepted": ("variations-0", "3d-bwd.format.private.indices"),
        "padding_of_two_accepted_3d": ("variations-0", "3d-bwd.length.padding"),
        "result_channels_unchecked": ("variations-0", "3d-bwd.shape.gradInput"),
        "uint32_indices_accepted": ("variations-0", "3d-bwd.dtype.indices"),
        "zero_width_stride_accepted": ("variations-0", "3d-bwd.stride.positive"),
    },
}
"""Single values which one check misjudges: calls that are varied and drawn find them, after the first round.

By operator, where each is found: in which part of the contract, by calls that which clause decides; none where they
are legal.
"""


FOUND_AMONG = {
    ("contract", "AdaptiveMaxPool2d"): "cache_key_lacks_lists negative_output_width_accepted",
    ("contract", "AdaptiveMaxPool3d"): "empty_refused",
    ("contract", "MaxPool2dWithIndices"): "null_out_as_invalid",
    ("contract", "MaxPool2dWithIndicesBackward"): "bfloat16_accepted_2d zero_dilation_accepted_2d zero_stride_accepted",
    ("contract", "MaxPool2dWithMask"): "half_padding_exceeded",
    ("contract", "MaxPool2dWithMaskBackward"): "null_result_as_invalid pooled_width_unchecked result_dtype_unchecked",
    ("contract", "MaxPool3dWithArgmaxBackward"): "null_dilation_accepted plane_limit_missing",
    ("determinism", "AdaptiveMaxPool3dBackward"): "half_accumulator",
    ("determinism", "MaxPool3dWithArgmaxBackward"): "ceil_clip_missing wide_lanes_halved",
    ("empty_windows", "MaxPool2dWithIndices"): "dilation_accepted index_behind_plane",
    ("endurance", "AdaptiveMaxPool2dBackward"): "host_leak_per_call host_leak_per_refusal",
    ("layouts", "AdaptiveMaxPool2d"): "gaps_overwritten offset_ignored plane_gap_ignored",
    ("layouts", "AdaptiveMaxPool2dBackward"): "narrowed_rows_lost",
    ("layouts", "AdaptiveMaxPool3d"): "rewrapped_offset_lost",
    ("layouts", "AdaptiveMaxPool3dBackward"): "short_lanes_truncated",
    ("layouts", "MaxPool2dWithIndicesBackward"): (
        "gaps_not_stored gradient_strides_ignored phases_rounded_down simt_count_wraps unit_kernel_ignores_stride"
    ),
    ("layouts", "MaxPool3dWithArgmaxBackward"): (
        "expanded_plane_ignored offset_in_bytes plane_offset_dropped zero_stride_advances"
    ),
    ("memory", "MaxPool2dWithIndices"): "leak_per_call",
    ("pairs", "AdaptiveMaxPool3d"): "adaptive_window_in_float",
    ("pairs", "MaxPool2dWithIndices"): "tagged_output_packed",
    ("phases", "AdaptiveMaxPool2d"): "default_stream_refused first_stream_kept",
    ("phases", "AdaptiveMaxPool2dBackward"): "descriptors_read_late first_stream_kept",
    ("phases", "AdaptiveMaxPool3dBackward"): "executor_bound_to_thread first_stream_kept",
    ("phases", "MaxPool2dWithIndices"): "newest_executor_runs null_workspace_accepted tensor_address_kept",
    ("phases", "MaxPool2dWithIndicesBackward"): "first_stream_kept newest_windows_used plan_of_other_thread",
    ("phases", "MaxPool3dWithArgmax"): "null_executor_accepted",
    ("phases", "MaxPool3dWithArgmaxBackward"): "first_stream_kept",
    ("precision", "AdaptiveMaxPool3dBackward"): "plane_tail_dropped",
    ("special_values", "AdaptiveMaxPool2dBackward"): (
        "gradient_of_first_plane opposite_infinities_cancel row_tail_not_flushed"
    ),
    ("special_values", "AdaptiveMaxPool3d"): "adaptive_windows_of_one_size",
    ("special_values", "MaxPool2dWithIndices"): "compares_rounded_data",
    ("special_values", "MaxPool2dWithMask"): "signed_zeros_ordered",
    ("special_values", "MaxPool2dWithMaskBackward"): "atomic_add_flushes",
    ("state", "AdaptiveMaxPool2d"): "workspace_address_kept",
    ("state", "AdaptiveMaxPool2dBackward"): "bfloat16_truncated deterministic_width_tail halo_counted_twice",
    ("state", "MaxPool2dWithIndicesBackward"): (
        "large_kernel_assigns reciprocal_row_division tiling_key_lacks_ceil_mode"
    ),
    ("state", "MaxPool3dWithArgmax"): "overhang_read_as_zero",
    ("streams", "AdaptiveMaxPool2d"): "result_written_late",
    ("streams", "AdaptiveMaxPool2dBackward"): "event_wait_ignored inputs_read_at_the_call",
    ("tagged", "MaxPool2dWithIndicesBackward"): (
        "channels_last_batch_order lost_halo_window merged_key_missing merged_rows_collide tile_end_inclusive"
    ),
    ("tagged", "MaxPool3dWithArgmax"): "odd_channel_lost",
    ("targets", "AdaptiveMaxPool2dBackward"): "float16_subnormals_flushed repeat_counter_wraps",
    ("targets", "AdaptiveMaxPool3d"): "buffer_of_narrow_indices nan_lost_in_deep_windows",
    ("targets", "AdaptiveMaxPool3dBackward"): "tile_sums_rounded",
    ("targets", "MaxPool2dWithIndices"): (
        "ceil_rows_of_next_plane padded_start_shifted part_index_begins_at_zero part_index_unset"
    ),
    ("targets", "MaxPool2dWithIndicesBackward"): (
        "channels_last_dilation_ignored dilation_blind_range int16_tile_offset rows_read_past_plane "
        "single_window_of_first_plane uint16_plane_index width_tail_dropped"
    ),
    ("targets", "MaxPool3dWithArgmax"): (
        "cache_key_lacks_strides idle_core_wins_tie kernel_field_wraps lowest_finite_initial minus_infinity_unset "
        "output_strides_ignored uint12_window_offset uint16_row_offset uint8_window_offset"
    ),
    ("targets", "MaxPool3dWithArgmaxBackward"): (
        "bfloat16_moved_as_float16 cut_kernel_last_slab_lost dilation_blind_overlap empty_stride_repeats_first "
        "float16_half_away infinity_saturated int16_output_column last_units_lost order_by_address saturation_left_on "
        "slices_cut_despite_determinism step_not_awaited"
    ),
    ("values", "AdaptiveMaxPool2d"): "folder_changed",
    ("values", "AdaptiveMaxPool2dBackward"): "crash_on_uneven_cores",
    ("values", "MaxPool2dWithMask"): "single_stride_refused",
    ("values", "MaxPool2dWithMaskBackward"): "last_ceil_window_dropped",
    ("values", "MaxPool3dWithArgmax"): "dilation_of_first_axis",
    ("values", "MaxPool3dWithArgmaxBackward"): "dilation_blind_phases",
}
"""Defects that the first round finds late, by the aspect and the operator of what finds them, which is asked first.

``first_stream_kept`` stands in several places, for it is not found in the same one each time.
"""
