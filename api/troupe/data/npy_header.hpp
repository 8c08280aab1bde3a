#pragma once
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

}  // namespace troupe
