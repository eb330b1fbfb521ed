// The light stand-in for c10/cuda/CUDAGuard.h.
#pragma once

#include "light_stream.h"

namespace kerneltruth_light {

extern "C" int8_t kt_exchange_device(int8_t device);

namespace cuda {

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
