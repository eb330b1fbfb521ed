// What the light headers call: PyTorch's own functions, behind names without types of PyTorch's.
//
// Compiled once for each PyTorch, Python and compiler, with PyTorch's own headers, and linked to
// every extension that is built with the light ones. A tensor is passed as the pointer to its
// implementation, null where it is undefined; what is returned is owned by the caller.
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/types.h>
#ifdef KERNELTRUTH_CUDA
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace py = pybind11;

using Held = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
using Thunk = PyObject* (*)(void (*)(), PyObject* const*);

struct RawOptions {
  int8_t dtype = -1, device = -1, index = -2, grad = -1;
};

static_assert(int8_t(at::kByte) == 0 && int8_t(at::kChar) == 1 && int8_t(at::kShort) == 2);
static_assert(int8_t(at::kInt) == 3 && int8_t(at::kLong) == 4 && int8_t(at::kHalf) == 5);
static_assert(int8_t(at::kFloat) == 6 && int8_t(at::kDouble) == 7 && int8_t(at::kBool) == 11);
static_assert(int8_t(at::kBFloat16) == 15 && int8_t(at::kCPU) == 0 && int8_t(at::kCUDA) == 1);

namespace {

at::Tensor lent(void* p) {
  if (p == nullptr) return {};
  return at::Tensor(Held::reclaim_copy(static_cast<c10::TensorImpl*>(p)));
}

void* given(at::Tensor t) { return t.defined() ? t.unsafeReleaseTensorImpl() : nullptr; }

at::TensorOptions options_of(RawOptions raw) {
  at::TensorOptions o;
  if (raw.dtype >= 0) o = o.dtype(at::ScalarType(raw.dtype));
  if (raw.device >= 0) o = o.device(at::Device(at::DeviceType(raw.device), raw.index));
  if (raw.grad >= 0) o = o.requires_grad(bool(raw.grad));
  return o;
}

[[noreturn]] void refuse() { throw py::type_error("incompatible function arguments"); }

template <typename T>
T taken(PyObject* o) {
  py::detail::make_caster<T> caster;
  // As for the only overload of a function: with conversions.
  if (!caster.load(o, true)) refuse();
  return py::detail::cast_op<T>(std::move(caster));
}

PyObject* kept(py::object o) { return o.release().ptr(); }

struct Function {
  PyMethodDef method;
  std::string name, doc;
  void (*function)();
  Thunk thunk;
  Py_ssize_t count;
};

PyObject* called(PyObject* self, PyObject* arguments) {
  HANDLE_TH_ERRORS
  auto* f = static_cast<Function*>(PyCapsule_GetPointer(self, nullptr));
  try {
    if (PyTuple_GET_SIZE(arguments) != f->count) refuse();
    return f->thunk(f->function, &PyTuple_GET_ITEM(arguments, 0));
  } catch (const py::builtin_exception& error) {
    error.set_error();
    return nullptr;
  }
  END_HANDLE_TH_ERRORS
}

}  // namespace

extern "C" {

void* kt_retain(void* p) { return given(lent(p)); }
void kt_release(void* p) { Held::reclaim(static_cast<c10::TensorImpl*>(p)); }
bool kt_contiguous_already(void* p) { return lent(p).is_contiguous(); }
bool kt_cuda(void* p) { return lent(p).is_cuda(); }
int64_t kt_numel(void* p) { return lent(p).numel(); }
int64_t kt_dim(void* p) { return lent(p).dim(); }
int64_t kt_size(void* p, int64_t d) { return lent(p).size(d); }
int64_t kt_stride(void* p, int64_t d) { return lent(p).stride(d); }
int64_t kt_element_size(void* p) { return lent(p).element_size(); }
int8_t kt_dtype(void* p) { return int8_t(lent(p).scalar_type()); }

const int64_t* kt_sizes(void* p, size_t* n) {
  at::IntArrayRef s = lent(p).sizes();
  *n = s.size();
  return s.data();
}

const int64_t* kt_strides(void* p, size_t* n) {
  at::IntArrayRef s = lent(p).strides();
  *n = s.size();
  return s.data();
}

RawOptions kt_options(void* p) {
  at::TensorOptions o = lent(p).options();
  RawOptions raw;
  raw.dtype = int8_t(at::typeMetaToScalarType(o.dtype()));
  raw.device = int8_t(o.device().type());
  raw.index = o.device().index();
  return raw;
}

void* kt_data(void* p, int8_t type) {
  at::Tensor t = lent(p);
  switch (type) {
    case -1: return t.data_ptr();
    case int8_t(at::kFloat): return t.data_ptr<float>();
    case int8_t(at::kDouble): return t.data_ptr<double>();
    case int8_t(at::kLong): return t.data_ptr<int64_t>();
    case int8_t(at::kInt): return t.data_ptr<int>();
    case int8_t(at::kShort): return t.data_ptr<int16_t>();
    case int8_t(at::kChar): return t.data_ptr<int8_t>();
    case int8_t(at::kByte): return t.data_ptr<uint8_t>();
    default: return t.data_ptr<bool>();
  }
}

// The numbers below are those of the enumerations in light.h.
void* kt_unary(void* p, int what) {
  at::Tensor t = lent(p);
  switch (what) {
    case 0: return given(t.contiguous());
    case 1: return given(t.clone());
    case 2: return given(t.t());
    case 3: return given(t.mean());
    case 4: return given(t.sum());
    case 5: return given(t.detach());
    case 6: return given(t.cpu());
    case 7: return given(t.sqrt());
    case 8: return given(t.exp());
    case 9: return given(t.rsqrt());
    default: return given(t.squeeze());
  }
}

void* kt_dims(void* p, int what, int64_t a, int64_t b) {
  at::Tensor t = lent(p);
  switch (what) {
    case 0: return given(t.transpose(a, b));
    case 1: return given(t.unsqueeze(a));
    case 2: return given(t.squeeze(a));
    case 3: return given(t.select(a, b));
    default: return given(t.flatten(a, b));
  }
}

void* kt_sized(void* p, int what, const int64_t* sizes, size_t n) {
  at::Tensor t = lent(p);
  at::IntArrayRef s(sizes, n);
  switch (what) {
    case 0: return given(t.view(s));
    case 1: return given(t.reshape(s));
    case 2: return given(t.permute(s));
    default: return given(t.expand(s));
  }
}

void* kt_make(int what, const int64_t* sizes, size_t n, RawOptions raw) {
  at::IntArrayRef s(sizes, n);
  at::TensorOptions o = options_of(raw);
  switch (what) {
    case 0: return given(torch::empty(s, o));
    case 1: return given(torch::zeros(s, o));
    default: return given(torch::ones(s, o));
  }
}

void* kt_make_like(void* p, int what, RawOptions raw) {
  at::Tensor t = lent(p);
  at::TensorOptions o = options_of(raw);
  switch (what) {
    case 0: return given(torch::empty_like(t, o));
    case 1: return given(torch::zeros_like(t, o));
    default: return given(torch::ones_like(t, o));
  }
}

void* kt_binary(void* p, void* q, int what) {
  at::Tensor a = lent(p), b = lent(q);
  switch (what) {
    case 0: return given(a.matmul(b));
    case 1: return given(a.mm(b));
    case 2: return given(a.copy_(b));
    default: return given(a.view_as(b));
  }
}

void kt_in_place(void* p, int what, double value) {
  at::Tensor t = lent(p);
  what == 0 ? t.zero_() : t.fill_(value);
}

double kt_item(void* p) { return lent(p).item<double>(); }
int64_t kt_item_integer(void* p) { return lent(p).item<int64_t>(); }

[[noreturn]] void kt_fail(const char* func, const char* file, uint32_t line, const char* text) {
  c10::detail::torchCheckFail(func, file, line, text);
}

[[noreturn]] void kt_internal(
    const char* func, const char* file, uint32_t line, const char* condition, const char* text) {
  std::string where = std::string(condition) + " INTERNAL ASSERT FAILED at \"" + file + "\":" +
      std::to_string(line) + ", please report a bug to PyTorch. ";
  c10::detail::torchInternalAssertFail(func, file, line, where.c_str(), text);
}

[[noreturn]] void kt_not_implemented(
    const char* func, const char* file, uint32_t line, const char* name, int8_t type) {
  throw c10::NotImplementedError(
      {func, file, line},
      std::string("\"") + name + "\" not implemented for '" + c10::toString(at::ScalarType(type)) +
          "'");
}

#ifdef KERNELTRUTH_CUDA
void* kt_stream(int8_t device) { return c10::cuda::getCurrentCUDAStream(device).stream(); }

int8_t kt_exchange_device(int8_t device) {
  int8_t before = c10::cuda::current_device();
  if (device >= 0) c10::cuda::set_device(device);
  return before;
}

void kt_cuda_check(int32_t error, const char* file, const char* func, uint32_t line) {
  c10::cuda::c10_cuda_check_implementation(error, file, func, line, true);
}
#endif

PyObject* kt_module(const char* name, void (*fill)(PyObject*)) {
  HANDLE_TH_ERRORS
  static std::vector<std::unique_ptr<PyModuleDef>> definitions;
  definitions.push_back(std::make_unique<PyModuleDef>());
  PyModuleDef& definition = *definitions.back();
  definition = {PyModuleDef_HEAD_INIT, (new std::string(name))->c_str(), nullptr, -1};
  py::object module = py::reinterpret_steal<py::object>(PyModule_Create(&definition));
  if (!module) throw py::error_already_set();
  fill(module.ptr());
  return kept(module);
  END_HANDLE_TH_ERRORS
}

void kt_define(
    PyObject* module, const char* name, const char* doc, void (*function)(), Thunk thunk,
    int count) {
  // Functions live as long as the process.
  auto* f = new Function{{}, name, doc, function, thunk, count};
  f->method = {f->name.c_str(), called, METH_VARARGS, f->doc.c_str()};
  py::capsule self(f, [](void*) {});
  auto made = py::reinterpret_steal<py::object>(PyCFunction_NewEx(&f->method, self.ptr(), nullptr));
  if (!made || PyObject_SetAttrString(module, name, made.ptr()) != 0) throw py::error_already_set();
}

void* kt_get_tensor(PyObject* o) { return given(taken<at::Tensor>(o)); }
bool kt_get_bool(PyObject* o) { return taken<bool>(o); }
int kt_get_int(PyObject* o) { return taken<int>(o); }
int64_t kt_get_long(PyObject* o) { return taken<int64_t>(o); }
float kt_get_float(PyObject* o) { return taken<float>(o); }
double kt_get_double(PyObject* o) { return taken<double>(o); }
void kt_get_longs(PyObject* o, std::vector<int64_t>* v) { *v = taken<std::vector<int64_t>>(o); }
bool kt_is_none(PyObject* o) { return o == Py_None; }

PyObject* const* kt_get_items(PyObject* o, size_t* count, PyObject** owner) {
  // Strings and bytes are sequences, and not lists of tensors: so says pybind11.
  if (!PySequence_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o)) {
    refuse();
  }
  *owner = PySequence_Fast(o, "incompatible function arguments");
  if (*owner == nullptr) throw py::error_already_set();
  *count = size_t(PySequence_Fast_GET_SIZE(*owner));
  return PySequence_Fast_ITEMS(*owner);
}

void kt_let_go(PyObject* o) { Py_XDECREF(o); }
PyObject* kt_put_tensor(void* p) { return kept(py::cast(lent(p))); }
PyObject* kt_put_none() { return kept(py::none()); }
PyObject* kt_put_bool(bool v) { return kept(py::bool_(v)); }
PyObject* kt_put_long(int64_t v) { return kept(py::int_(v)); }
PyObject* kt_put_double(double v) { return kept(py::float_(v)); }

PyObject* kt_put_items(PyObject** items, size_t count, bool as_tuple) {
  PyObject* made = as_tuple ? PyTuple_New(Py_ssize_t(count)) : PyList_New(Py_ssize_t(count));
  if (made == nullptr) throw py::error_already_set();
  for (size_t i = 0; i < count; ++i) {
    if (as_tuple) {
      PyTuple_SET_ITEM(made, Py_ssize_t(i), items[i]);
    } else {
      PyList_SET_ITEM(made, Py_ssize_t(i), items[i]);
    }
  }
  return made;
}

}  // extern "C"
