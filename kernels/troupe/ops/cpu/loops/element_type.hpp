#pragma once
#include <utility>

#include "troupe/tensor/dtype.hpp"

namespace troupe::cpu {

/// A tag for an element type: element_type<float>{} and so on.
template <class T>
struct element_type {
  using type = T;
};

/// Calls `run(element_type<T>{})` with the type of the elements of `type`.
template <class Run>
decltype(auto) with_element_type(dtype type, const Run& run) {
  switch (type) {
    case dtype::u8:
      return run(element_type<std::uint8_t>{});
    case dtype::i32:
      return run(element_type<std::int32_t>{});
    case dtype::i64:
      return run(element_type<std::int64_t>{});
    case dtype::bf16:
      return run(element_type<bfloat16>{});
    case dtype::f16:
      return run(element_type<float16>{});
    case dtype::boolean:
      return run(element_type<bool>{});
    default:
      return run(element_type<float>{});
  }
}

}  // namespace troupe::cpu
