"""Mistakes that language models make in these kernels, as edits of the right ones.

Each is written as (what stands there, what stands there instead), so that it can be read as a diff.
Kernels of `NEVER_RIGHT` are wrong as they stand: they compute in floats where the task asks for
quantized arithmetic.
"""

Edits = tuple[tuple[str, str], ...]

NEVER_RIGHT = ("layernorm_w8a8", "matmul_w8a8")

_HALF_SUM = (
    (
        "work = tl.float64 if x.dtype == torch.float64 else tl.float32",
        "work = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}.get(x.dtype, tl.float32)",
    ),
)
_ONE_DIM = (
    (
        "tuple(d % rank for d in (dim if isinstance(dim, (tuple, list)) else (dim,)))",
        "(dim % rank,)",
    ),
)

FAULTS: dict[str, dict[str, Edits]] = {
    "relu": {
        "nan": (("tl.where(x < 0, tl.zeros_like(x), x)", "tl.maximum(x, 0.0)"),),
        "tail": (("triton.cdiv(n, 1024)", "max(n // 1024, 1)"),),
        "strides": (("input.contiguous()", "input"),),
        "no_inplace": (("def relu(input, inplace=False):", "def relu(input):"),),
    },
    "sigmoid": {
        "overflow": (
            (
                "    y = tl.where(x >= 0, 1.0 / (1.0 + z), z / (1.0 + z))\n",
                "    y = z / (1.0 + z)\n",
            ),
            (
                "    # exp of a number that is not positive never overflows.\n"
                "    z = tl.exp(-tl.abs(x))\n",
                "    z = tl.exp(x)\n",
            ),
        ),
        "strides": (("input.contiguous()", "input"),),
        "no_such_function": (
            (
                "    y = tl.where(x >= 0, 1.0 / (1.0 + z), z / (1.0 + z))\n",
                "    y = tl.math.logistic(x)\n",
            ),
        ),
    },
    "leaky_relu": {
        "maximum": (("tl.where(x < 0, x * SLOPE, x)", "tl.maximum(x, x * SLOPE)"),),
        "slope_ignored": (("x * SLOPE", "x * 0.01"),),
        "no_inplace": ((", inplace=False):", "):"),),
    },
    "gelu": {
        "tanh_always": (('TANH=approximate == "tanh"', "TANH=True"),),
        "no_half": (("0.5 * x * (1.0 + tl.erf", "x * (1.0 + tl.erf"),),
        "tail": (("triton.cdiv(n_elements, 1024)", "max(n_elements // 1024, 1)"),),
        "no_such_function": (("tl.erf(", "tl.gauss_error("),),
    },
    "add": {
        "alpha_ignored": (("x + alpha * y", "x + y"),),
        "no_broadcast": (("torch.broadcast_tensors(input, other)", "input, other"),),
    },
    "exp_sqrt": {
        "no_such_function": (("tl.exp(0.5 * x)", "tl.exponential(0.5 * x)"),),
        "store_unmasked": (
            ("y.to(out_ptr.dtype.element_ty), mask=mask)", "y.to(out_ptr.dtype.element_ty))"),
        ),
        "by_root": (
            ("    # The root of an exponential is the exponential of half.\n", ""),
            ("tl.exp(0.5 * x)", "tl.sqrt(tl.exp(x))"),
        ),
        "exp_only": (("tl.exp(0.5 * x)", "tl.exp(x)"),),
    },
    "softmax": {
        "other_zero": (('other=-float("inf")', "other=0.0"),),
        "no_max": (("    x = x - tl.max(x, axis=0)\n", ""),),
        "dim_ignored": (
            ("input.movedim(dim, -1).contiguous()", "input.contiguous()"),
            ("out.movedim(-1, dim).contiguous()", "out"),
        ),
        "fixed_block": (("block = triton.next_power_of_2(n_cols)", "block = 256"),),
    },
    "sum": {
        "half_sum": _HALF_SUM,
        "keepdim_ignored": (
            (
                "    if keepdim:\n        for d in sorted(dims):\n"
                "            out = out.unsqueeze(d)\n",
                "",
            ),
        ),
        "one_dim": _ONE_DIM,
        "tail": (("range(0, n_cols, BLOCK)", "range(0, n_cols // BLOCK * BLOCK, BLOCK)"),),
    },
    "mean": {
        "padded_size": (
            (
                "tl.sum(total, axis=0) / n_cols",
                "tl.sum(total, axis=0) / (tl.cdiv(n_cols, BLOCK) * BLOCK)",
            ),
        ),
        "half_sum": _HALF_SUM,
        "one_dim": _ONE_DIM,
        "keepdim_ignored": (
            (
                "    if keepdim:\n        for d in sorted(dims):\n"
                "            result = result.unsqueeze(d)\n",
                "",
            ),
        ),
    },
    "argmax": {
        "ties_last": (("if block_best > best:", "if block_best >= best:"),),
        "int32": (("dtype=torch.int64", "dtype=torch.int32"), (".to(tl.int64)", "")),
        "nan_ignored": (
            (
                "        nan_here = tl.min(tl.where((x != x) & (cols < n_cols), cols, n_cols), "
                "axis=0)\n",
                "",
            ),
            (
                "        if (best == best) & (nan_here < n_cols):\n"
                "            best_index = nan_here\n"
                "            best = tl.load(x_ptr + row * n_cols + nan_here)\n"
                "        elif best == best:\n",
                "        if best == best:\n",
            ),
        ),
        "flat_ignored": (
            (
                "    if dim is None:\n"
                "        x = x.contiguous().reshape(1, -1)\n"
                "        kept = []\n"
                "    else:\n",
                "    if True:\n",
            ),
            (
                "out.reshape([1] * rank) if dim is None else out.unsqueeze(dim)",
                "out.unsqueeze(dim)",
            ),
        ),
    },
    "mse_loss": {
        "padded_mean": (("divisor = float(n) if", "divisor = float(count * 1024) if"),),
        "sum_is_mean": (
            ('divisor = float(n) if reduction == "mean" else 1.0', "divisor = float(n)"),
        ),
        "half_partials": (
            (
                "partial = torch.empty(count, dtype=torch.float32, device=x.device)",
                "partial = torch.empty(count, dtype=x.dtype, device=x.device)",
            ),
        ),
        "strides": (("input.contiguous(), target.contiguous()", "input, target"),),
    },
    "smooth_l1_loss": {
        "beta_ignored": (
            (
                "tl.where(d < beta, 0.5 * d * d / safe, d - 0.5 * beta)",
                "tl.where(d < 1.0, 0.5 * d * d, d - 0.5)",
            ),
        ),
        "sum_is_mean": (
            ('divisor = float(n) if reduction == "mean" else 1.0', "divisor = float(n)"),
        ),
        "no_half": (("d - 0.5 * beta", "d - beta"),),
    },
    "kl_div": {
        "log_of_zero": (
            ("tl.where(t == 0, 0.0, t * (tl.log(safe) - x))", "t * (tl.log(t) - x)"),
            (
                "        # A target of 0 adds 0, though its logarithm is not finite.\n"
                "        safe = tl.where(t > 0, t, 1.0)\n",
                "",
            ),
        ),
        "batchmean_is_mean": (("divisor = float(x.shape[0]) if", "divisor = float(n) if"),),
        "log_target_ignored": (("LOG=log_target", "LOG=False"),),
    },
    "matrix_vector_dot": {
        "dot_with_y": (("z * tl.load(x_ptr + row)", "z * tl.load(y_ptr + row)"),),
        "beta_ignored": (("beta * tl.load(y_ptr + row)", "tl.load(y_ptr + row)"),),
        "unmasked": (
            (
                "tl.load(a_ptr + row * n + cols, mask=mask, other=0.0)",
                "tl.load(a_ptr + row * n + cols)",
            ),
            ("tl.load(x_ptr + cols, mask=mask, other=0.0)", "tl.load(x_ptr + cols)"),
        ),
    },
    "matmul_fp16": {
        "k_tail": (
            ("a_mask = (rows[:, None] < M) & (k[None, :] < K)", "a_mask = rows[:, None] < M"),
            ("b_mask = (k[:, None] < K) & (cols[None, :] < N)", "b_mask = cols[None, :] < N"),
        ),
        "half_sum": (
            (
                "acc = tl.zeros((BM, BN), dtype=tl.float32)",
                "acc = tl.zeros((BM, BN), dtype=tl.float16)",
            ),
            ("acc += tl.dot(a, b)", "acc += tl.dot(a, b).to(tl.float16)"),
        ),
        "one_batch": ((", batches)", ", 1)"),),
        "floor": (("triton.cdiv(M, 32), triton.cdiv(N, 32)", "max(M // 32, 1), max(N // 32, 1)"),),
    },
    "tril_mm_and_scale": {
        "strict": (("k[None, :] <= rows[:, None]", "k[None, :] < rows[:, None]"),),
        "upper": (("k[None, :] <= rows[:, None]", "k[None, :] >= rows[:, None]"),),
        "beta_ignored": (("float(alpha * beta)", "float(alpha)"),),
        "no_mask": (
            ("(k[:, None] < M) & (cols[None, :] < N)\n        a", "cols[None, :] < N\n        a"),
        ),
    },
    "index_select": {
        "negative_dim": (("    dim = dim % x.dim()\n", ""),),
        "first_dim": (("    dim = dim % x.dim()\n", "    dim = 0\n"),),
        "index_strides": (("index.contiguous()", "index"), ("input.contiguous()", "input")),
    },
    "permute_copy": {
        "wrong_strides": (
            ("[input.stride(d) for d in dims]", "[input.stride(d) for d in range(rank)]"),
        ),
        "view": (
            (
                "    n = out.numel()\n",
                "    return input.permute(dims).contiguous()\n    n = out.numel()\n",
            ),
        ),
    },
    "avg_pool1d": {
        "counts_inside": (
            (
                "    total = tl.zeros([BLOCK], dtype=tl.float32)\n",
                "    total = tl.zeros([BLOCK], dtype=tl.float32)\n"
                "    count = tl.zeros([BLOCK], dtype=tl.float32)\n",
            ),
            (
                "        total += x.to(tl.float32)\n",
                "        total += x.to(tl.float32)\n        count += inside.to(tl.float32)\n",
            ),
            ("    # The zeros of the padding count.\n", ""),
            ("total / kernel_size", "total / count"),
        ),
        "stride_one": (("kernel_size if stride is None", "1 if stride is None"),),
        "no_padding": (("offsets % windows * stride - padding", "offsets % windows * stride"),),
    },
    "fused_sub_gelu": {
        "alpha_ignored": (("x - alpha * y", "x - y"),),
        "tanh_always": (('tanh_form = approximate == "tanh"', "tanh_form = True"),),
        "no_broadcast": (("other.expand(x.shape).contiguous()", "other.contiguous()"),),
        "no_such_function": (("tl.erf(", "tl.math.gaussian_erf("),),
    },
    "fused_mv_sigmoid_sub": {
        "step_one": (("step = 1 if other.numel() > 1 else 0", "step = 1"),),
        "overflow": (
            (
                "    z = tl.exp(-tl.abs(dot))\n"
                "    gate = tl.where(dot >= 0, 1.0 / (1.0 + z), z / (1.0 + z))\n",
                "    z = tl.exp(dot)\n    gate = z / (1.0 + z)\n",
            ),
        ),
        "tail": (("range(0, K, BLOCK)", "range(0, K // BLOCK * BLOCK, BLOCK)"),),
    },
    "fused_log_tanh": {
        "no_such_function": (
            ('y = tl.where(x == float("inf"), 1.0, y)', "y = tl.tanh(tl.log(x))"),
        ),
        "squares": (
            (
                "    y = d * (1.0 + r) / (1.0 + r * r)\n"
                '    y = tl.where(x == float("inf"), 1.0, y)\n',
                "    y = (x * x - 1.0) / (x * x + 1.0)\n",
            ),
        ),
        "infinity": (('    y = tl.where(x == float("inf"), 1.0, y)\n', ""),),
    },
    "fused_mul_sub": {
        "alpha_on_all": (("x * m - alpha * s", "alpha * (x * m - s)"),),
        "alpha_ignored": (("x * m - alpha * s", "x * m - s"),),
        "no_broadcast": (("other_mul.expand(x.shape).contiguous()", "other_mul.contiguous()"),),
    },
    "symmetric_matrix_vector_norm": {
        "p_ignored": (("n, 1.0 if infinite else float(p), INF=infinite", "n, 2.0, INF=False"),),
        "nan": (
            (
                "    # A maximum passes NaN over.\n"
                "    lost = tl.sum(tl.where(y != y, 1, 0), axis=0)\n"
                '    result = tl.where(lost > 0, float("nan"), result)\n',
                "",
            ),
        ),
        "beta_ignored": (("float(alpha * (1 + beta))", "float(alpha)"),),
    },
    "SGD": {
        "dampening_ignored": (("(1.0 - DAMPENING) * d", "d"),),
        "decay_sign": (("g + DECAY * p", "g - DECAY * p"),),
        "buffer_lost": (("return (new_p, new_buf) if uses else (new_p, None)", "return new_p"),),
    },
    "Lion": {
        "new_average": (
            (
                "    c = BETA1 * m + (1.0 - BETA1) * g\n",
                "    m = BETA2 * m + (1.0 - BETA2) * g\n    c = BETA1 * m + (1.0 - BETA1) * g\n",
            ),
            ("- LR * sign\n    m = BETA2 * m + (1.0 - BETA2) * g\n", "- LR * sign\n"),
        ),
        "sign_of_zero": (("tl.where(c < 0, -1.0, 0.0)", "-1.0"),),
        "decay_ignored": (("p * (1.0 - LR * DECAY)", "p"),),
    },
    "matmul_w8a8": {
        "tail": (("triton.cdiv(M, 32), triton.cdiv(N, 32)", "max(M // 32, 1), max(N // 32, 1)"),),
        "half_sum": (
            (
                "acc = tl.zeros((BM, BN), dtype=tl.float32)",
                "acc = tl.zeros((BM, BN), dtype=tl.float16)",
            ),
            (
                'tl.dot(a, b, input_precision="ieee")',
                'tl.dot(a, b, input_precision="ieee").to(tl.float16)',
            ),
        ),
    },
    "layernorm_w8a8": {
        "padded_mean": (("tl.sum(x, axis=0) / n", "tl.sum(x, axis=0) / BLOCK"),),
        "no_eps": ((" / n + eps)", " / n)"),),
    },
}
