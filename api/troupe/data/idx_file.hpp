#pragma once
#include <filesystem>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// IDX is the file format of MNIST and its successors: two zero bytes, the element type, the number of
/// extents, the extents as big-endian 32-bit numbers, outermost first, then the elements. Files of unsigned
/// bytes are understood, gzipped or plain.

/// The extents in the file's header, without reading the elements. Throws bad_input, naming the file, what
/// was expected and what was found, for a file that is missing, empty or no IDX file, that has other than
/// `rank` extents or a zero among them, or that is too small to hold what its header promises.
shape read_idx_header(const std::filesystem::path& file, int rank);

/// The elements: u8, of the header's shape. Throws as above, and for data that is truncated, damaged or goes
/// on after the last element.
tensor read_idx(const std::filesystem::path& file, int rank);

}  // namespace troupe
