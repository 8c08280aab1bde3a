#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/tensor/stored_number.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::detail {

/// The content of the dictionary at the beginning of an NPY file.
struct npy_header {
  stored_number type = stored_number::f32;
  shape extents;
};

/// Parses a header such as "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", padded with spaces
/// and ended by a newline. Throws bad_input, without the file's name, for any other text. Fortran order is
/// read where it is C order too: with at most one extent other than 1, or no elements.
npy_header parse_npy_header(std::string_view text);

/// Formats the dictionary, without padding. Throws std::invalid_argument for bf16.
std::string to_text(const npy_header& header);

/// The header of an NPY file, and where its elements are.
struct npy_layout {
  npy_header header;
  std::uint64_t offset = 0;      ///< of the first element, in bytes
  std::uint64_t file_bytes = 0;  ///< size of the whole file
};

/// Reads the header and checks it against the size of the file. Throws bad_input as read_npy does.
npy_layout read_npy_layout(const std::filesystem::path& file);

/// The dtype of the tensor that such elements become: `as` if it is given. Throws bad_input, without the
/// file's name, for elements that no tensor has unless `as` is given; `option` is where it is given, for the
/// message.
dtype npy_dtype(const npy_header& header, std::optional<dtype> as, const std::string& option);

}  // namespace troupe::detail
