// All that the factories of torch:: (torch/csrc/autograd/generated/variable_factories.h) use of it.
#pragma once
#include <ATen/core/Tensor.h>
#include <ATen/core/LegacyTypeDispatch.h>

namespace torch::autograd {

// Factories pass a tensor that nobody else holds, so no copy is due; see PyTorch's make_variable.
inline at::Tensor make_variable(at::Tensor data, bool requires_grad = false, bool = true) {
  if (requires_grad) data.set_requires_grad(true);
  return data;
}

}  // namespace torch::autograd
