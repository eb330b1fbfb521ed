"""Indexing, transposition, pooling and interpolation."""

from __future__ import annotations

from kerneltruth.corpus.entry import Entry, bug, control

_INDEXING: tuple[Entry, ...] = (
    control("embedding", "embedding", "a strided table, any width"),
    bug(
        "embedding_one_column_block",
        control="embedding",
        fault="output beyond the first column block never stored",
        breaks="memory",
        note="columns from 128 on stay uninitialized",
    ),
    control("index_select", "index_select", "the input's own strides"),
    bug(
        "index_select_assumes_contiguous",
        control="index_select",
        fault="stride assumption",
        breaks="layouts",
        note="wrong for any input that is not contiguous",
    ),
    bug(
        "index_select_grid_from_input",
        control="index_select",
        fault="grid sized by the input instead of the output",
        breaks="memory",
        note="rows stay uninitialized where more are picked than there are, by blocks of 16",
    ),
    control("gather", "gather", "a flat grid over the indices"),
    control("scatter_add", "scatter_add", "atomic additions at repeated indices"),
    bug(
        "scatter_add_not_atomic",
        control="scatter_add",
        fault="race within and between programs",
        breaks="published",
        note="of equal indices in one block only one addition survives, on every device",
    ),
    control("transpose_copy", "transpose_copy", "a transposed tile"),
    bug(
        "transpose_copy_swapped_grid",
        control="transpose_copy",
        fault="grid axes swapped",
        breaks="memory",
        note="tiles stay uninitialized unless both dims have the same number of blocks of 32",
    ),
    control("roll", "roll", "shifts of either sign and any size"),
    bug(
        "roll_negative_shift",
        control="roll",
        fault="remainder of a negative number",
        breaks="memory",
        note="a negative shift reads beyond the end of the row",
    ),
)

ENTRIES: tuple[Entry, ...] = (
    *_INDEXING,
    control("avg_pool1d", "avg_pool1d", "ceil_mode and both ways to count padding"),
    bug(
        "avg_pool1d_ignores_count_include_pad",
        control="avg_pool1d",
        fault="attribute ignored",
        breaks="attributes",
        note="windows at the ends, with count_include_pad=False",
    ),
    bug(
        "avg_pool1d_divides_by_kernel_size",
        control="avg_pool1d",
        fault="divisor of the last window",
        breaks="attributes",
        note="the last window under ceil_mode, where it leaves the padded input",
    ),
    control("max_pool2d", "max_pool2d", "minus infinity outside; NaN wins"),
    bug(
        "max_pool2d_zero_padding",
        control="max_pool2d",
        fault="padding with 0 instead of minus infinity",
        breaks="values",
        note="windows at the border whose elements are all negative",
    ),
    bug(
        "max_pool2d_swallows_nan",
        control="max_pool2d",
        fault="NaN swallowed by maximum",
        breaks="specials",
        note="a window with a NaN returns its largest number",
    ),
    control("adaptive_avg_pool2d", "adaptive_avg_pool2d", "overlapping windows of unequal size"),
    bug(
        "adaptive_avg_pool2d_fixed_window",
        control="adaptive_avg_pool2d",
        fault="windows of one size",
        breaks="shapes",
        note="wrong unless the output size divides the input's",
    ),
    control("interpolate_nearest", "interpolate_nearest", "integer source positions"),
    bug(
        "nearest_rounds",
        control="interpolate_nearest",
        fault="rounding instead of floor",
        breaks="shapes",
        note="right only where every position is integral, as in halving",
    ),
    control("interpolate_bilinear", "interpolate_bilinear", "both conventions for corners"),
    bug(
        "bilinear_negative_source",
        control="interpolate_bilinear",
        fault="negative position not clamped",
        breaks="shapes",
        note="the first rows and columns when enlarging",
    ),
    bug(
        "bilinear_ignores_align_corners",
        control="interpolate_bilinear",
        fault="attribute ignored",
        breaks="attributes",
        note="wrong with align_corners=True",
    ),
    bug(
        "bilinear_no_half_pixel",
        control="interpolate_bilinear",
        fault="half-pixel offset missing",
        breaks="published",
        note="wrong unless the size stays the same or align_corners is True",
    ),
)
