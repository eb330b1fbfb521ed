// Of torch/extension.h the tensors; the bindings only where they are made, which nvcc never does.
#pragma once
#include <torch/types.h>
#include <Python.h>
#ifndef __CUDACC__
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <bitset>
#include <condition_variable>
#include <queue>
#endif
