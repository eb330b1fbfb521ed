"""The gpuemu corpus: published kernels with float64 references, as a suite."""
