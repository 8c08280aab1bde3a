#pragma once
#include <filesystem>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Reads a model's weights, sorted by name, from a safetensors file, or from the newest intact snapshot in a
/// snapshot folder. Throws bad_input if there are none.
std::vector<named_tensor> read_weights(const std::filesystem::path& from);

}  // namespace troupe
