// The light stand-in for c10/cuda/CUDAStream.h.
#pragma once

#include "light_check.h"

namespace kerneltruth_light {

extern "C" void* kt_stream(int8_t device);

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

}  // namespace cuda
}  // namespace kerneltruth_light
