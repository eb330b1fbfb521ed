// The light stand-in for c10/cuda/CUDAException.h.
#pragma once

#include <cuda_runtime.h>

#include "light.h"

namespace kerneltruth_light {
extern "C" void kt_cuda_check(int32_t error, const char* file, const char* func, uint32_t line);
}

#define C10_CUDA_CHECK(EXPR)                                                       \
  do {                                                                             \
    const cudaError_t __err = EXPR;                                                \
    ::kerneltruth_light::kt_cuda_check(                                            \
        static_cast<int32_t>(__err), __FILE__, __func__,                           \
        static_cast<uint32_t>(__LINE__));                                          \
  } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
