#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "troupe/nn/sequential.hpp"

namespace troupe {

/// The weights of all stages, each a packed state, in name order and in memory of their own. Throws
/// std::runtime_error for what is no packed state. Not installed, as all here.
std::vector<named_tensor> unpacked_weights(const std::vector<tensor>& packed_stages);

/// Bytes of a model's parameters and buffers.
std::uint64_t weights_bytes(const nn::Sequential& model);

/// Why no file of `size_bytes` can be written under the name `file`, as far as that can be known without
/// writing it: no such folder, one that cannot be written to, something that is no regular file, no room.
/// Empty if nothing is known.
std::string problem_of_saving(const std::filesystem::path& file, std::uint64_t size_bytes);

}  // namespace troupe
