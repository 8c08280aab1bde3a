#include "troupe/tensor/dtype.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

std::size_t size_bytes(dtype type) {
  switch (type) {
    case dtype::f32:
    case dtype::i32:
      return 4;
    case dtype::bf16:
    case dtype::f16:
      return 2;
    case dtype::u8:
    case dtype::boolean:
      return 1;
    case dtype::i64:
      return 8;
  }
  throw_invalid("size_bytes", "a dtype", std::to_string(static_cast<int>(type)));
}

std::string_view to_string(dtype type) {
  switch (type) {
    case dtype::f32:
      return "f32";
    case dtype::u8:
      return "u8";
    case dtype::i32:
      return "i32";
    case dtype::i64:
      return "i64";
    case dtype::bf16:
      return "bf16";
    case dtype::f16:
      return "f16";
    case dtype::boolean:
      return "bool";
  }
  return "unknown";
}

dtype dtype_from_number(std::uint8_t number) {
  if (number > static_cast<std::uint8_t>(dtype::boolean))
    throw_invalid("dtype_from_number", "0 to 6 (f32, u8, i32, i64, bf16, f16, bool)", std::to_string(number));
  return static_cast<dtype>(number);
}

}  // namespace troupe
