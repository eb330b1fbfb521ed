"""The categories of tasks: what puts a task into each, in one sentence.

The names are KernelBenchX's, which states no criteria; the sentences are read off its tasks.
`Attention` and `Broadcast` are names of this package's tasks alone.
"""

from __future__ import annotations

from collections.abc import Mapping

CRITERIA: Mapping[str, str] = {
    "Activation": "One activation function of a network, alone, in one or several dtypes.",
    "Attention": "Attention over queries, keys and values, with or without a mask.",
    "Broadcast": "One tensor read several times along a dim that the result adds.",
    "Convolution": "One convolution, plain or transposed, with its options.",
    "Fusion": "Several operators in one call, whose results in between are not returned.",
    "Index": "Elements moved or chosen by an index, a mask or an order of dims, and not computed.",
    "LinearAlgebra": "A decomposition, inverse, determinant or solution of a system of equations.",
    "Loss": "One loss function, from predictions and targets to a number or an element each.",
    "Math": "A formula for each element, a scan along a dim, or a transform, beyond activations.",
    "MatrixMultiply": "A product of matrices or vectors, with at most a step before or after it.",
    "Normalization": "Values divided by a norm or a deviation that is computed from them.",
    "Optimizer": "One update of parameters from gradients, with the optimizer's state.",
    "Pooling": "A mean or maximum over windows that slide along dims.",
    "Quantization": "Values kept as small integers with scales, converted or computed with.",
    "Random": "A new tensor from sizes and numbers, without an input tensor.",
    "Reduce": "One or several dims brought to a value each, such as a sum, mean or index.",
    "SpatialOps": "An image or volume sampled at other places, by a grid or another size.",
}
