#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// The content of the dictionary at the beginning of an NPY file.
struct npy_header {
  dtype type = dtype::f32;
  shape extents;
};

/// Parses a header such as "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }", padded with spaces
/// and ended by a newline. Throws bad_input, without the file's name, for any other text.
npy_header parse_npy_header(std::string_view text);

/// Formats the dictionary, without padding. Throws std::invalid_argument for bf16.
std::string to_text(const npy_header& header);

/// The header of an NPY file, and where its elements are.
struct npy_layout {
  npy_header header;
  std::uint64_t offset = 0;      ///< of the first element, in bytes
  std::uint64_t file_bytes = 0;  ///< of the whole file
};

/// Reads the header and checks it against the size of the file. Throws bad_input as read_npy does.
npy_layout read_npy_layout(const std::filesystem::path& file);

/// Throws bad_input, without the file's name, unless all elements of a boolean array are 0 or 1.
void check_npy_elements(const tensor& array);

}  // namespace troupe
