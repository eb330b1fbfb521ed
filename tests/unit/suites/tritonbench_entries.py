"""What TritonBench-T calls its 166 entries, by where their tasks are."""


def words(text):
    """The names of a list."""
    return tuple(text.split())


# KernelBenchX's tasks under the same name.
SAME = words("""
    abs Adam adaptive_avg_pool2d add addmm airy_ai argmax asin batch_norm bessel_j1 bitwise_and
    bitwise_and_binomial chebyshev_polynomial_t cholesky cholesky_solve combined_activation
    conv2d cos det determinant_lu determinant_via_qr digamma div eig erf erfc_sqrt exp_sqrt fftn
    floor fused_add_mul_groupnorm fused_avg_pool2d_cosine_similarity fused_bmm_dropout_gelu
    fused_bmm_rmsnorm_gelu_dropout fused_bmm_rmsnorm_gelu_dropout_sub fused_cholesky_solve
    fused_cosine_embedding_loss_with_normalization fused_cross_entropy_log_softmax
    fused_cross_entropy_softmax_layernorm fused_embedding_add_tanh
    fused_fractional_max_pool2d_with_relu fused_gather_masked_fill fused_hardshrink_dropout
    fused_hardsigmoid_batch_norm fused_hstack_div fused_index_select_eq
    fused_instance_norm_selu_conv2d fused_layer_norm_relu_linear fused_lu_solve
    fused_masked_select_add_gelu fused_mul_add_logsoftmax_dropout_bmm
    fused_mv_logsoftmax_dropout fused_mv_sigmoid_sub fused_pairwise_distance_adaptive_avg_pool2d
    fused_pairwise_distance_normalize fused_qr_solve fused_repeat_interleave_log_softmax
    fused_silu_layer_norm_conv2d fused_svd_reconstruct fused_tile_exp fused_transformer_block
    gammaln gelu grid_sample grid_sample_with_affine i0 ifftshift index_fill_ invert_matrix_lu
    ldl_factor leaky_relu log log1p logit logspace low_rank_svd_approximation lu matmul
    matrix_multiply_and_row_dot matrix_multiply_symmetric matrix_power_eig matrix_vector_dot min
    min_gelu mul normalize_pairwise_distance normalized_cosine_similarity permute_copy polygamma
    pow pseudoinverse_svd qr rad2deg_sqrt rand reciprocal relu rsqrt selu sigmoid signbit
    signbit_bitwise_and softmax solve_and_add_scaled_vector solve_symmetric_ldl
    spectral_norm_eig sqrt_exp sqrt_tanh std sub sum svd symmetric_matrix_vector_norm
    symmetric_mm_and_abs_sum tanh tensordot_rsqrt tril_mm_and_scale trunc zeta
""")

# KernelBenchX's tasks, which there begin with "fused_".
FUSED = words("""
    add_gelu add_mean conv2d_add cos_avg_pool1d cos_signbit dropout_relu_batch_norm_conv2d
    dropout_sigmoid_linear elu_linear exp_mean gelu_conv2d gelu_min gelu_std leaky_relu_conv2d
    log_softmax_linear log_tanh mul_sub pixel_shuffle_conv2d relu_batch_norm_conv2d relu_conv2d
    relu_max_pool2d_conv2d relu_sqrt sigmoid_adaptive_avg_pool2d sigmoid_batch_norm softmax_log
    softplus_linear sub_gelu sum_std tanh_linear
""")

# Tasks of its own.
OWN = words("""
    broadcast_tensors exp least_squares_qr logsumexp max mul_relu ones_like scaled_add_dot
    scaled_add_norm SGD sigmoid_argmax sigmoid_conv2d silu_batch_norm softmax_mul
    solve_multiple_lu sqrt tensordot
""")

# KernelBenchX's tasks, named by their first argument.
ARGUMENTS = {"input": "mean", "A": "solve"}

# No kernels.
NONE = ("autocast", "quantize_dynamic")

# Entries that stand behind the name of their module in an instruction.
DOTTED = {
    "svd": "linalg.svd",
    "eig": "linalg.eig",
    "permute_copy": "torch.permute_copy",
    "det": "linalg.det",
    "ldl_factor": "linalg.ldl_factor",
    "cholesky": "linalg.cholesky",
}
