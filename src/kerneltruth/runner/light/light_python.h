// The light stand-in for pybind11, as far as `load_inline` writes bindings with it.
#pragma once

#include "light.h"

struct _object;
typedef struct _object PyObject;

namespace kerneltruth_light {

using Thunk = PyObject* (*)(void (*function)(), PyObject* const* arguments);

extern "C" {
PyObject* kt_module(const char* name, void (*fill)(PyObject*));
void kt_define(PyObject*, const char* name, const char* doc, void (*)(), Thunk, int count);
// Arguments are taken by pybind11's own casters, which raise TypeError for what does not fit.
void* kt_get_tensor(PyObject*);
bool kt_get_bool(PyObject*);
int kt_get_int(PyObject*);
int64_t kt_get_long(PyObject*);
float kt_get_float(PyObject*);
double kt_get_double(PyObject*);
void kt_get_longs(PyObject*, std::vector<int64_t>*);
PyObject* const* kt_get_items(PyObject*, size_t* count, PyObject** owner);
void kt_let_go(PyObject*);
bool kt_is_none(PyObject*);
PyObject* kt_put_tensor(void*);
PyObject* kt_put_none();
PyObject* kt_put_bool(bool);
PyObject* kt_put_long(int64_t);
PyObject* kt_put_double(double);
PyObject* kt_put_items(PyObject** items, size_t count, bool as_tuple);
}

template <typename T>
struct Get;
#define KERNELTRUTH_GET(TYPE, HOW) \
  template <>                      \
  struct Get<TYPE> {               \
    static TYPE from(PyObject* o) { return HOW(o); } \
  };
KERNELTRUTH_GET(bool, kt_get_bool)
KERNELTRUTH_GET(int, kt_get_int)
KERNELTRUTH_GET(int64_t, kt_get_long)
KERNELTRUTH_GET(float, kt_get_float)
KERNELTRUTH_GET(double, kt_get_double)
template <>
struct Get<Tensor> {
  static Tensor from(PyObject* o) { return Tensor::owning(kt_get_tensor(o)); }
};
template <>
struct Get<std::vector<int64_t>> {
  static std::vector<int64_t> from(PyObject* o) {
    std::vector<int64_t> v;
    kt_get_longs(o, &v);
    return v;
  }
};
template <>
struct Get<std::vector<Tensor>> {
  static std::vector<Tensor> from(PyObject* o) {
    size_t count;
    struct Owner {
      PyObject* held = nullptr;
      ~Owner() { kt_let_go(held); }
    } owner;
    PyObject* const* items = kt_get_items(o, &count, &owner.held);
    std::vector<Tensor> v;
    for (size_t i = 0; i < count; ++i) v.push_back(Get<Tensor>::from(items[i]));
    return v;
  }
};
template <>
struct Get<std::optional<Tensor>> {
  static std::optional<Tensor> from(PyObject* o) {
    if (kt_is_none(o)) return std::nullopt;
    return Get<Tensor>::from(o);
  }
};

inline PyObject* put(const Tensor& t) { return kt_put_tensor(t.raw()); }
inline PyObject* put(bool v) { return kt_put_bool(v); }
inline PyObject* put(int v) { return kt_put_long(v); }
inline PyObject* put(int64_t v) { return kt_put_long(v); }
inline PyObject* put(float v) { return kt_put_double(v); }
inline PyObject* put(double v) { return kt_put_double(v); }
inline PyObject* put(const std::vector<Tensor>& v) {
  std::vector<PyObject*> items;
  for (const Tensor& t : v) items.push_back(put(t));
  return kt_put_items(items.data(), items.size(), false);
}
template <typename... A>
PyObject* put(const std::tuple<A...>& v) {
  return std::apply(
      [](const A&... a) {
        PyObject* items[] = {put(a)...};
        return kt_put_items(items, sizeof...(A), true);
      },
      v);
}

template <typename R, typename... A>
struct Call {
  template <size_t... I>
  static PyObject* make(R (*f)(A...), PyObject* const* a, std::index_sequence<I...>) {
    // Braces: arguments are taken in order.
    std::tuple<std::decay_t<A>...> taken{Get<std::decay_t<A>>::from(a[I])...};
    if constexpr (std::is_void_v<R>) {
      f(static_cast<A>(std::get<I>(taken))...);
      return kt_put_none();
    } else {
      return put(f(static_cast<A>(std::get<I>(taken))...));
    }
  }
  static PyObject* thunk(void (*f)(), PyObject* const* a) {
    return make(reinterpret_cast<R (*)(A...)>(f), a, std::index_sequence_for<A...>{});
  }
};

struct Module {
  template <typename R, typename... A>
  Module& def(const char* name, R (*f)(A...), const char* doc = "") {
    kt_define(
        self, name, doc, reinterpret_cast<void (*)()>(f), &Call<R, A...>::thunk, sizeof...(A));
    return *this;
  }
  PyObject* self;
};

template <typename R, typename... A>
auto wrap_pybind_function(R (*f)(A...)) { return f; }

}  // namespace kerneltruth_light

#define KERNELTRUTH_JOIN_(a, b) a##b
#define KERNELTRUTH_JOIN(a, b) KERNELTRUTH_JOIN_(a, b)
#define KERNELTRUTH_TEXT_(a) #a
#define KERNELTRUTH_TEXT(a) KERNELTRUTH_TEXT_(a)
#define PYBIND11_MODULE(NAME, VARIABLE)                                                       \
  static void kerneltruth_fill(::kerneltruth_light::Module&);                                 \
  extern "C" __attribute__((visibility("default"))) PyObject* KERNELTRUTH_JOIN(               \
      PyInit_, NAME)() {                                                                      \
    return ::kerneltruth_light::kt_module(KERNELTRUTH_TEXT(NAME), [](PyObject* module) {      \
      ::kerneltruth_light::Module wrapped{module};                                            \
      kerneltruth_fill(wrapped);                                                              \
    });                                                                                       \
  }                                                                                           \
  static void kerneltruth_fill([[maybe_unused]] ::kerneltruth_light::Module& VARIABLE)
