#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/tensor/stored_number.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::safetensors {

/// A tensor's place in a safetensors file; its bytes are [begin, end), counted from the end of the header.
struct safetensors_entry {
  std::string name;
  std::string dtype_name;             ///< as in the file: "F32"
  std::optional<stored_number> type;  ///< none: numbers that are not understood, such as F8_E4M3
  shape extents;
  std::uint64_t begin = 0, end = 0;
};

/// The JSON object at the beginning of a safetensors file.
struct safetensors_header {
  std::vector<safetensors_entry> tensors;  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
};

/// Parses `text`. `data_bytes` bytes of elements follow it, which the tensors must cover exactly, without
/// overlaps or holes. Throws bad_input, without the file's name, for anything else.
safetensors_header parse_safetensors_header(std::string_view text, std::uint64_t data_bytes);

/// "F32" of f32. Each dtype of tensors has a name.
std::string safetensors_name(stored_number type);

/// The JSON text, of `dtype_name`s, padded with spaces to a multiple of 8 bytes. Throws std::invalid_argument
/// if a name or a metadata text is no UTF-8.
std::string to_text(const safetensors_header& header);

/// Throws std::invalid_argument, "[function] ...", for tensors that no file can have: undefined, of a name
/// that occurs twice or is the format's own.
void check_tensors(const char* function, const std::vector<named_tensor>& tensors);

/// Tensors of a dtype with a smaller number are written first.
int order_in_file(dtype type);

}  // namespace troupe::safetensors
