#pragma once
#include <filesystem>
#include <optional>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// NPY is the file format of NumPy for one array (numpy.lib.format): a magic string, a version, the length of
/// a header, the header as a Python dictionary, then the elements.

struct npy_options {
  /// The dtype of the tensor. None: the same as in the file, and numbers that no tensor has are refused: f64
  /// (NumPy's default), i8, i16, u16, u32 and u64. Floating dtypes get the nearest value, others only what
  /// they hold exactly.
  std::optional<dtype> as = {};
};

/// Reads the array in `file`, of format version 1, 2 or 3: numbers or booleans, little-endian, in C order (or
/// Fortran order where that is the same). Throws bad_input if the file is missing, truncated, has bytes after
/// the last element or another format, or if a value cannot be converted. The message names the file, what
/// was expected, what was found and what to do. Sizes in the header are checked against the file size before
/// any allocation.
tensor read_npy(const std::filesystem::path& file, const npy_options& options = {});

/// Atomically writes `array` to `file` in format version 1. Throws std::invalid_argument for an undefined
/// tensor and for bf16, which NumPy does not support (convert it to f32 first), and bad_input if the file
/// cannot be written.
void write_npy(const std::filesystem::path& file, const tensor& array);

}  // namespace troupe
