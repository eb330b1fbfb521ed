// A light stand-in for PyTorch's C++ headers: the part of them that most published kernels use.
//
// Reading torch/extension.h costs nvcc over 40 s of CPU, reading this less than one. Everything
// here declares what PyTorch declares, or less: a source that needs more fails to compile and is
// built with PyTorch's own headers. What a function does is PyTorch's own: `shim.cpp`, which is
// compiled with those headers, calls it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <math.h>
#include <optional>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// What this PyTorch has of what others lack: see `extension_kit`.
#include "light_config.h"

namespace kerneltruth_light {

enum class ScalarType : int8_t {
  Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble,
  Bool, QInt8, QUInt8, QInt32, BFloat16
};
constexpr ScalarType kByte = ScalarType::Byte, kChar = ScalarType::Char,
    kShort = ScalarType::Short, kInt = ScalarType::Int, kLong = ScalarType::Long,
    kHalf = ScalarType::Half, kFloat = ScalarType::Float, kDouble = ScalarType::Double,
    kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;
// Only the namespace torch has these names.
namespace widths {
constexpr ScalarType kUInt8 = ScalarType::Byte, kInt8 = ScalarType::Char,
    kInt16 = ScalarType::Short, kInt32 = ScalarType::Int, kInt64 = ScalarType::Long,
    kFloat16 = ScalarType::Half, kFloat32 = ScalarType::Float, kFloat64 = ScalarType::Double;
}

enum class DeviceType : int8_t { CPU, CUDA };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA;
using DeviceIndex = int8_t;

// What a TensorOptions says; -1 where it says nothing. -2 is a device without an index.
struct RawOptions {
  int8_t dtype = -1, device = -1, index = -2, grad = -1;
};

extern "C" {
void* kt_retain(void*);
void kt_release(void*);
bool kt_contiguous_already(void*);
bool kt_cuda(void*);
int64_t kt_numel(void*);
int64_t kt_dim(void*);
int64_t kt_size(void*, int64_t);
int64_t kt_stride(void*, int64_t);
int64_t kt_element_size(void*);
const int64_t* kt_sizes(void*, size_t*);
const int64_t* kt_strides(void*, size_t*);
int8_t kt_dtype(void*);
RawOptions kt_options(void*);
void* kt_data(void*, int8_t);
void* kt_unary(void*, int);
void* kt_dims(void*, int, int64_t, int64_t);
void* kt_sized(void*, int, const int64_t*, size_t);
void* kt_make(int, const int64_t*, size_t, RawOptions);
void* kt_make_like(void*, int, RawOptions);
void* kt_binary(void*, void*, int);
void kt_in_place(void*, int, double);
double kt_item(void*);
int64_t kt_item_integer(void*);
[[noreturn]] void kt_fail(const char* func, const char* file, uint32_t line, const char* text);
[[noreturn]] void kt_internal(
    const char* func, const char* file, uint32_t line, const char* condition, const char* text);
[[noreturn]] void kt_not_implemented(
    const char* func, const char* file, uint32_t line, const char* name, int8_t type);
}

enum Unary { CONTIGUOUS, CLONE, T, MEAN, SUM, DETACH, CPU_COPY, SQRT, EXP, RSQRT, SQUEEZE };
enum Dims { TRANSPOSE, UNSQUEEZE, SQUEEZE_DIM, SELECT, FLATTEN };
enum Sized { VIEW, RESHAPE, PERMUTE, EXPAND };
enum Make { EMPTY, ZEROS, ONES };
enum Binary { MATMUL, MM, COPY_, VIEW_AS };
enum InPlace { ZERO_, FILL_ };

struct Device {
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  bool operator==(const Device& o) const { return type_ == o.type_ && index_ == o.index_; }
  bool operator!=(const Device& o) const { return !(*this == o); }
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ != -1; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }

 private:
  DeviceType type_;
  DeviceIndex index_;
};

struct TypeMeta {
  ScalarType type;
};
inline bool operator==(TypeMeta a, TypeMeta b) { return a.type == b.type; }
inline bool operator!=(TypeMeta a, TypeMeta b) { return a.type != b.type; }
inline bool operator==(TypeMeta a, ScalarType b) { return a.type == b; }
inline bool operator!=(TypeMeta a, ScalarType b) { return a.type != b; }
inline bool operator==(ScalarType a, TypeMeta b) { return a == b.type; }
inline bool operator!=(ScalarType a, TypeMeta b) { return a != b.type; }

struct TensorOptions {
  TensorOptions() = default;
  explicit TensorOptions(RawOptions raw) : raw(raw) {}
  TensorOptions(ScalarType type) { raw.dtype = int8_t(type); }
  TensorOptions(TypeMeta type) { raw.dtype = int8_t(type.type); }
  TensorOptions(Device device) { *this = TensorOptions().device(device); }
  TensorOptions(DeviceType type) { *this = TensorOptions().device(type); }
  [[nodiscard]] TensorOptions dtype(ScalarType type) const {
    TensorOptions r = *this;
    r.raw.dtype = int8_t(type);
    return r;
  }
  [[nodiscard]] TensorOptions dtype(TypeMeta type) const { return dtype(type.type); }
  [[nodiscard]] TensorOptions device(Device device) const {
    TensorOptions r = *this;
    r.raw.device = int8_t(device.type());
    r.raw.index = device.index();
    return r;
  }
  [[nodiscard]] TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(Device(type, index));
  }
  [[nodiscard]] TensorOptions requires_grad(bool on) const {
    TensorOptions r = *this;
    r.raw.grad = on;
    return r;
  }
  RawOptions raw;
};
inline TensorOptions dtype(ScalarType type) { return TensorOptions(type); }
inline TensorOptions dtype(TypeMeta type) { return TensorOptions(type); }
inline TensorOptions device(Device device) { return TensorOptions(device); }

template <typename T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;
  constexpr ArrayRef() : data_(nullptr), size_(0) {}
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(end - begin) {}
  template <typename A>
  ArrayRef(const std::vector<T, A>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& v) : data_(v.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&v)[N]) : data_(v), size_(N) {}
  constexpr ArrayRef(const std::initializer_list<T>& v) : data_(v.begin()), size_(v.size()) {}
  constexpr iterator begin() const { return data_; }
  constexpr iterator end() const { return data_ + size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  bool equals(ArrayRef o) const { return size_ == o.size_ && std::equal(begin(), end(), o.begin()); }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

 private:
  const T* data_;
  size_t size_;
};
template <typename T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <typename T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
using IntArrayRef = ArrayRef<int64_t>;

template <typename T>
constexpr int8_t scalar_type_of() {
  if constexpr (std::is_same_v<T, float>) return int8_t(ScalarType::Float);
  else if constexpr (std::is_same_v<T, double>) return int8_t(ScalarType::Double);
  else if constexpr (std::is_same_v<T, int64_t>) return int8_t(ScalarType::Long);
  else if constexpr (std::is_same_v<T, int>) return int8_t(ScalarType::Int);
  else if constexpr (std::is_same_v<T, int16_t>) return int8_t(ScalarType::Short);
  else if constexpr (std::is_same_v<T, int8_t>) return int8_t(ScalarType::Char);
  else if constexpr (std::is_same_v<T, uint8_t>) return int8_t(ScalarType::Byte);
  else {
    static_assert(std::is_same_v<T, bool>, "PyTorch's own headers are needed");
    return int8_t(ScalarType::Bool);
  }
}

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) : impl_(kt_retain(o.impl_)) {}
  Tensor(Tensor&& o) noexcept : impl_(o.impl_) { o.impl_ = nullptr; }
  Tensor& operator=(const Tensor& o) & {
    Tensor copy(o);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_) kt_release(impl_);
  }
  static Tensor owning(void* impl) {
    Tensor t;
    t.impl_ = impl;
    return t;
  }
  void* raw() const { return impl_; }

  bool defined() const { return impl_ != nullptr; }
  bool is_cuda() const { return kt_cuda(impl_); }
  bool is_contiguous() const { return kt_contiguous_already(impl_); }
  int64_t numel() const { return kt_numel(impl_); }
  int64_t dim() const { return kt_dim(impl_); }
  int64_t ndimension() const { return kt_dim(impl_); }
  int64_t size(int64_t d) const { return kt_size(impl_, d); }
  int64_t stride(int64_t d) const { return kt_stride(impl_, d); }
  int64_t element_size() const { return kt_element_size(impl_); }
  IntArrayRef sizes() const {
    size_t n;
    const int64_t* p = kt_sizes(impl_, &n);
    return IntArrayRef(p, n);
  }
  IntArrayRef strides() const {
    size_t n;
    const int64_t* p = kt_strides(impl_, &n);
    return IntArrayRef(p, n);
  }
  ScalarType scalar_type() const { return ScalarType(kt_dtype(impl_)); }
  TypeMeta dtype() const { return TypeMeta{scalar_type()}; }
  TensorOptions options() const { return TensorOptions(kt_options(impl_)); }
  Device device() const {
    RawOptions o = kt_options(impl_);
    return Device(DeviceType(o.device), o.index);
  }
  template <typename T>
  T* data_ptr() const { return static_cast<T*>(kt_data(impl_, scalar_type_of<T>())); }
  void* data_ptr() const { return kt_data(impl_, -1); }

  Tensor contiguous() const { return owning(kt_unary(impl_, CONTIGUOUS)); }
  Tensor clone() const { return owning(kt_unary(impl_, CLONE)); }
  Tensor t() const { return owning(kt_unary(impl_, kerneltruth_light::T)); }
  Tensor mean() const { return owning(kt_unary(impl_, MEAN)); }
  Tensor sum() const { return owning(kt_unary(impl_, SUM)); }
  Tensor detach() const { return owning(kt_unary(impl_, DETACH)); }
  Tensor cpu() const { return owning(kt_unary(impl_, CPU_COPY)); }
  Tensor sqrt() const { return owning(kt_unary(impl_, SQRT)); }
  Tensor exp() const { return owning(kt_unary(impl_, EXP)); }
  Tensor rsqrt() const { return owning(kt_unary(impl_, RSQRT)); }
  Tensor squeeze() const { return owning(kt_unary(impl_, SQUEEZE)); }
  Tensor squeeze(int64_t d) const { return owning(kt_dims(impl_, SQUEEZE_DIM, d, 0)); }
  Tensor unsqueeze(int64_t d) const { return owning(kt_dims(impl_, UNSQUEEZE, d, 0)); }
  Tensor transpose(int64_t a, int64_t b) const { return owning(kt_dims(impl_, TRANSPOSE, a, b)); }
  Tensor select(int64_t d, int64_t i) const { return owning(kt_dims(impl_, SELECT, d, i)); }
  Tensor flatten(int64_t a = 0, int64_t b = -1) const {
    return owning(kt_dims(impl_, FLATTEN, a, b));
  }
  Tensor view(IntArrayRef s) const { return owning(kt_sized(impl_, VIEW, s.data(), s.size())); }
  Tensor reshape(IntArrayRef s) const {
    return owning(kt_sized(impl_, RESHAPE, s.data(), s.size()));
  }
  Tensor permute(IntArrayRef s) const {
    return owning(kt_sized(impl_, PERMUTE, s.data(), s.size()));
  }
  Tensor expand(IntArrayRef s) const { return owning(kt_sized(impl_, EXPAND, s.data(), s.size())); }
  Tensor matmul(const Tensor& o) const { return owning(kt_binary(impl_, o.impl_, MATMUL)); }
  Tensor mm(const Tensor& o) const { return owning(kt_binary(impl_, o.impl_, MM)); }
  Tensor view_as(const Tensor& o) const { return owning(kt_binary(impl_, o.impl_, VIEW_AS)); }
  Tensor& copy_(const Tensor& o) const {
    owning(kt_binary(impl_, o.impl_, COPY_));
    return const_cast<Tensor&>(*this);
  }
  Tensor& zero_() const {
    kt_in_place(impl_, ZERO_, 0);
    return const_cast<Tensor&>(*this);
  }
  template <typename N, typename = std::enable_if_t<std::is_arithmetic_v<N>>>
  Tensor& fill_(N value) const {
    kt_in_place(impl_, FILL_, double(value));
    return const_cast<Tensor&>(*this);
  }
  template <typename N>
  N item() const {
    static_assert(std::is_same_v<N, float> || std::is_same_v<N, double> ||
                  std::is_same_v<N, int> || std::is_same_v<N, int64_t>);
    if constexpr (std::is_integral_v<N>) return N(kt_item_integer(impl_));
    else return N(kt_item(impl_));
  }

 private:
  void* impl_ = nullptr;
};

inline Tensor make(int what, IntArrayRef s, TensorOptions o) {
  return Tensor::owning(kt_make(what, s.data(), s.size(), o.raw));
}
inline Tensor make_like(int what, const Tensor& t, TensorOptions o) {
  return Tensor::owning(kt_make_like(t.raw(), what, o.raw));
}
inline Tensor empty(IntArrayRef s, TensorOptions o = {}) { return make(EMPTY, s, o); }
inline Tensor zeros(IntArrayRef s, TensorOptions o = {}) { return make(ZEROS, s, o); }
inline Tensor ones(IntArrayRef s, TensorOptions o = {}) { return make(ONES, s, o); }
inline Tensor empty_like(const Tensor& t, TensorOptions o = {}) { return make_like(EMPTY, t, o); }
inline Tensor zeros_like(const Tensor& t, TensorOptions o = {}) { return make_like(ZEROS, t, o); }
inline Tensor ones_like(const Tensor& t, TensorOptions o = {}) { return make_like(ONES, t, o); }
inline Tensor matmul(const Tensor& a, const Tensor& b) { return a.matmul(b); }
inline Tensor mm(const Tensor& a, const Tensor& b) { return a.mm(b); }
inline Tensor mean(const Tensor& t) { return t.mean(); }
inline Tensor sum(const Tensor& t) { return t.sum(); }
inline Tensor sqrt(const Tensor& t) { return t.sqrt(); }
inline Tensor exp(const Tensor& t) { return t.exp(); }
inline Tensor rsqrt(const Tensor& t) { return t.rsqrt(); }
inline std::optional<Device> device_of(const Tensor& t) {
  if (!t.defined()) return std::nullopt;
  return t.device();
}

// The text of a failed check, as PyTorch writes it.
inline void append(std::string& s, const char* x) { s += x; }
inline void append(std::string& s, const std::string& x) { s += x; }
inline void append(std::string& s, char x) { s += x; }
inline void append(std::string& s, IntArrayRef x) {
  s += '[';
  for (size_t i = 0; i < x.size(); ++i) s += (i ? ", " : "") + std::to_string(x[i]);
  s += ']';
}
template <typename N, typename = std::enable_if_t<std::is_arithmetic_v<N>>>
void append(std::string& s, N x) {
  if constexpr (std::is_integral_v<N>) {
    s += std::to_string(x);
  } else {
    char text[40];
    std::snprintf(text, sizeof text, "%g", double(x));
    s += text;
  }
}
template <typename... A>
std::string str(const A&... a) {
  std::string s;
  (append(s, a), ...);
  return s;
}
inline std::string message(const char* usual) { return usual; }
template <typename... A>
std::string message(const char*, const A&... a) { return str(a...); }

}  // namespace kerneltruth_light

namespace c10 {
using namespace kerneltruth_light;
}
namespace at {
using namespace kerneltruth_light;
}
namespace torch {
using namespace kerneltruth_light;
using namespace kerneltruth_light::widths;
#ifdef KERNELTRUTH_OPTIONAL
using std::nullopt;
using std::optional;
#endif
}

#define TORCH_CHECK(cond, ...)                                                              \
  if (__builtin_expect(static_cast<bool>(!(cond)), 0)) {                                    \
    ::kerneltruth_light::kt_fail(                                                           \
        __func__, __FILE__, static_cast<uint32_t>(__LINE__),                                \
        ::kerneltruth_light::message(                                                       \
            "Expected " #cond " to be true, but got false.  (Could this error message be "  \
            "improved?  If so, please report an enhancement request to PyTorch.)",          \
            ##__VA_ARGS__).c_str());                                                        \
  }
#ifdef KERNELTRUTH_AT_ERROR
#define AT_ERROR(...)                                                                       \
  do {                                                                                      \
    TORCH_CHECK(false, ::kerneltruth_light::str(__VA_ARGS__));                              \
  } while (false)
#define AT_ASSERTM(cond, ...)                                                               \
  do {                                                                                      \
    if (__builtin_expect(static_cast<bool>(!(cond)), 0))                                    \
      ::kerneltruth_light::kt_internal(                                                     \
          __func__, __FILE__, static_cast<uint32_t>(__LINE__), #cond,                       \
          ::kerneltruth_light::str(__VA_ARGS__).c_str());                                   \
  } while (false)
#endif

#define KERNELTRUTH_CASE(SCALAR, TYPE, ...)     \
  case ::kerneltruth_light::ScalarType::SCALAR: { \
    using scalar_t [[maybe_unused]] = TYPE;     \
    return __VA_ARGS__();                       \
  }
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...)                                          \
  [&] {                                                                                      \
    const auto& the_type = TYPE;                                                             \
    constexpr const char* at_dispatch_name = NAME;                                           \
    ::kerneltruth_light::ScalarType _st = the_type;                                          \
    switch (_st) {                                                                           \
      KERNELTRUTH_CASE(Double, double, __VA_ARGS__)                                          \
      KERNELTRUTH_CASE(Float, float, __VA_ARGS__)                                            \
      default:                                                                               \
        ::kerneltruth_light::kt_not_implemented(                                             \
            __func__, __FILE__, static_cast<uint32_t>(__LINE__), at_dispatch_name,           \
            static_cast<int8_t>(_st));                                                       \
    }                                                                                        \
  }()
