// The light stand-in for c10/cuda: streams, guards and checks.
#pragma once

#include <cuda_runtime.h>

#include "light.h"

namespace kerneltruth_light {

extern "C" {
void* kt_stream(int8_t device);
int8_t kt_exchange_device(int8_t device);
void kt_cuda_check(int32_t error, const char* file, const char* func, uint32_t line);
}

namespace cuda {

class CUDAStream {
 public:
  explicit CUDAStream(cudaStream_t stream) : stream_(stream) {}
  operator cudaStream_t() const { return stream_; }
  cudaStream_t stream() const { return stream_; }

 private:
  cudaStream_t stream_;
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  return CUDAStream(static_cast<cudaStream_t>(kt_stream(device)));
}

class OptionalCUDAGuard {
 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device.has_value()) before_ = kt_exchange_device(device->index());
  }
  ~OptionalCUDAGuard() {
    if (before_ >= 0) kt_exchange_device(before_);
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;

 private:
  int8_t before_ = -1;
};
class CUDAGuard {
 public:
  explicit CUDAGuard(DeviceIndex device) : before_(kt_exchange_device(device)) {}
  explicit CUDAGuard(Device device) : before_(kt_exchange_device(device.index())) {}
  ~CUDAGuard() { kt_exchange_device(before_); }
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;

 private:
  int8_t before_;
};

}  // namespace cuda
}  // namespace kerneltruth_light

#define C10_CUDA_CHECK(EXPR)                                                       \
  do {                                                                             \
    const cudaError_t __err = EXPR;                                                \
    ::kerneltruth_light::kt_cuda_check(                                            \
        static_cast<int32_t>(__err), __FILE__, __func__,                           \
        static_cast<uint32_t>(__LINE__));                                          \
  } while (0)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
