"""Which answer each method got for each task: a kernel with the faults that are named.

`right` is the kernel as it stands in `kernels/`; faults are those of `faults.py`, joined by `+`.
Beside them there are answers that are no kernel at all: see `record.py`. For `refine` the rounds of
one chain are listed, and a later one repairs what the feedback named, or does not.
"""

# task: (one_shot, best_of_n, refine)
PLAN: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "relu": ("nan", ("right", "nan", "strides"), ("nan", "right")),
    "sigmoid": ("right", ("overflow", "right", "right"), ("overflow+strides", "strides", "right")),
    "leaky_relu": (
        "maximum",
        ("right", "maximum", "no_inplace"),
        ("no_inplace", "maximum", "right"),
    ),
    "gelu": ("right", ("right", "tanh_always", "right"), ("no_half", "right")),
    "add": ("right", ("no_broadcast", "right", "alpha_ignored"), ("no_broadcast", "right")),
    "exp_sqrt": (
        "no_such_function",
        ("by_root", "right", "exp_only"),
        ("no_such_function", "by_root"),
    ),
    "softmax": (
        "dim_ignored",
        ("other_zero", "dim_ignored", "right"),
        ("other_zero+dim_ignored", "dim_ignored", "right"),
    ),
    "sum": ("one_dim", ("right", "half_sum", "one_dim"), ("one_dim+half_sum", "half_sum", "right")),
    "mean": (
        "padded_size",
        ("padded_size", "right", "cut_off"),
        ("cut_off", "padded_size", "right"),
    ),
    "argmax": (
        "ties_last",
        ("nan_ignored", "int32", "right"),
        ("int32", "nan_ignored", "nan_ignored"),
    ),
    "mse_loss": ("right", ("right", "padded_mean", "right"), ("sum_is_mean", "right")),
    "smooth_l1_loss": (
        "beta_ignored",
        ("right", "beta_ignored", "no_half"),
        ("beta_ignored", "right"),
    ),
    "kl_div": (
        "log_of_zero",
        ("log_of_zero", "batchmean_is_mean", "right"),
        ("log_of_zero+log_target_ignored", "log_of_zero", "right"),
    ),
    "matrix_vector_dot": (
        "beta_ignored",
        ("right", "unmasked", "dot_with_y"),
        ("dot_with_y", "right"),
    ),
    "matmul_fp16": ("k_tail", ("right", "k_tail", "half_sum"), ("half_sum", "k_tail", "right")),
    "tril_mm_and_scale": ("strict", ("upper", "no_mask", "right"), ("upper", "right")),
    "index_select": (
        "negative_dim",
        ("right", "first_dim", "right"),
        ("other_name", "first_dim", "right"),
    ),
    "permute_copy": (
        "wrong_strides",
        ("right", "prose", "wrong_strides"),
        ("wrong_strides", "right"),
    ),
    "avg_pool1d": (
        "counts_inside",
        ("right", "stride_one", "counts_inside"),
        ("counts_inside", "right"),
    ),
    "fused_sub_gelu": (
        "no_broadcast",
        ("right", "alpha_ignored", "no_broadcast"),
        ("no_such_function", "no_broadcast", "right"),
    ),
    "fused_mv_sigmoid_sub": (
        "step_one",
        ("right", "step_one", "tail"),
        ("tail+step_one", "step_one", "right"),
    ),
    "fused_log_tanh": (
        "no_such_function",
        ("squares", "infinity", "squares"),
        ("squares", "infinity", "right"),
    ),
    "fused_mul_sub": (
        "alpha_on_all",
        ("right", "right", "no_broadcast"),
        ("alpha_on_all", "right"),
    ),
    "symmetric_matrix_vector_norm": (
        "p_ignored",
        ("p_ignored", "nan", "right"),
        ("p_ignored", "nan", "nan"),
    ),
    "SGD": ("dampening_ignored", ("right", "decay_sign", "buffer_lost"), ("decay_sign", "right")),
    "Lion": ("new_average", ("right", "new_average", "sign_of_zero"), ("sign_of_zero", "right")),
    "matmul_w8a8": ("right", ("half_sum", "right", "tail"), ("tail", "right", "refusal")),
    "layernorm_w8a8": (
        "right",
        ("no_eps", "right", "kernel_only"),
        ("padded_mean", "right", "right"),
    ),
}
