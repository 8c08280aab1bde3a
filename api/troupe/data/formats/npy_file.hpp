#pragma once
#include <filesystem>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// NPY is the file format of NumPy for one array (numpy.lib.format): a magic string, a version, the length of
/// a header, the header as a Python dictionary, then the elements.

/// Reads the array in `file`, of format version 1, 2 or 3: f32, f16, i64, i32, u8 or bool, little-endian, in
/// C order. Throws bad_input, naming the file, what was expected, what was found and what to do, if the file
/// is missing, truncated, has bytes after the last element or another format. Sizes in the header are checked
/// against the file size before any allocation.
tensor read_npy(const std::filesystem::path& file);

/// Atomically writes `array` to `file` in format version 1. Throws std::invalid_argument for an undefined
/// tensor and for bf16, which NumPy does not support (convert it to f32 first), and bad_input if the file
/// cannot be written.
void write_npy(const std::filesystem::path& file, const tensor& array);

}  // namespace troupe
