"""The part of the corpus that a default audit judges, to keep it near a minute on two cores.

It holds all published kernels, one bug or more for each way in which machine-written kernels were
seen to fail, and the controls of these. `audit --full` judges everything.
"""

from __future__ import annotations

# Controls beside the published ones.
CONTROLS = (
    "softplus",
    "log_softmax",
    "silu_grid_stride",
    "relu_strided",
    "sum",
    "mean",
    "std",
    "row_max",
    "argmax",
    "matmul_ieee",
    "causal_attention",
    "floor",
    "pow",
    "clamp",
    "lerp",
    "quantize_int8",
    "cross_entropy",
    "binary_cross_entropy",
    "mse_loss",
    "cumsum",
    "reverse_cumsum",
    "count_nonzero",
    "amax",
    "masked_softmax",
    "topk",
    "embedding",
    "index_select",
    "avg_pool1d",
    "max_pool2d",
    "interpolate_bilinear",
)

# Bugs beside the published ones.
BUGS = (
    # formulas that overflow or cancel
    "tanh_naive_exp",
    "sigmoid_naive_exp",
    "softplus_naive_exp",
    "log_softmax_no_max",
    "std_one_pass",
    "l2norm_no_eps",
    # precision of the accumulator
    "sum_half_accumulator",
    "matmul_half_accumulator",
    # sizes that are not multiples, grids, tails, memory
    "matmul_k_tail_unmasked",
    "gelu_last_block_skipped",
    "mean_padded_size",
    "silu_grid_capped",
    "embedding_one_column_block",
    "cumsum_drops_carry",
    "reverse_cumsum_races",
    "lerp_one_config_wrong",
    # layouts, inputs, aliases
    "sigmoid_flat_noncontiguous",
    "index_select_assumes_contiguous",
    "relu_in_place",
    "relu_returns_input",
    # special values, ties, single elements
    "relu_nan_swallowed",
    "row_max_nan_swallowed",
    "clamp_swallows_nan",
    "masked_softmax_empty_row",
    "std_single_column_zero",
    "argmax_ties_last",
    "topk_removes_equal_values",
    "amax_by_int_bits",
    # values outside of the tested range
    "elu_copy",
    "floor_by_int_cast",
    "pow_by_logarithm",
    "binary_cross_entropy_epsilon",
    "quantize_int8_wraps",
    "quantize_int8_adds_half",
    "max_pool2d_zero_padding",
    "bilinear_negative_source",
    "bilinear_no_half_pixel",
    # attributes
    "causal_attention_bottom_right",
    "cross_entropy_counts_ignored",
    "cross_entropy_smoothing_unscaled",
    "avg_pool1d_ignores_count_include_pad",
)
