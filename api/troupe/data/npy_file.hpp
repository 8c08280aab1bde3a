#pragma once
#include <filesystem>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// NPY is the file format of NumPy for one array (numpy.lib.format): a magic string, a version, the length of
/// a header, the header as a Python dictionary, then the elements.

/// The array in `file`, of format version 1, 2 or 3: f32, f16, i64, i32, u8 or bool, little-endian and in C
/// order. Throws bad_input, naming the file, what was expected, what was found and what to do, for a file
/// that is missing, truncated, goes on after the last element or holds anything else; no size in the header
/// is believed before it is checked against the file's own.
tensor read_npy(const std::filesystem::path& file);

/// Makes `file` hold `array` in format version 1, or leaves what was there. Throws std::invalid_argument for
/// an undefined tensor and for bf16, which NumPy does not know (convert it to f32 first), and bad_input if
/// the file cannot be written.
void write_npy(const std::filesystem::path& file, const tensor& array);

}  // namespace troupe
