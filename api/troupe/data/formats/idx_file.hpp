#pragma once
#include <filesystem>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// IDX is the file format of MNIST and its successors: two zero bytes, the element type, the number of
/// extents, the extents as big-endian 32-bit numbers, outermost first, then the elements. Only files of
/// unsigned bytes are supported, gzipped or plain.

/// Reads the extents from the file's header. Throws bad_input, naming the file, what was expected and what
/// was found, if the file is missing, empty, not an IDX file, too small for its header, or does not have
/// `rank` non-zero extents.
shape read_idx_header(const std::filesystem::path& file, int rank);

/// Reads the elements: u8, of the header's shape. Throws as above, and if the data is truncated, corrupt or
/// has bytes after the last element.
tensor read_idx(const std::filesystem::path& file, int rank);

}  // namespace troupe
