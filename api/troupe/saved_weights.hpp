#pragma once
#include <filesystem>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// A trained model's weights, in name order: from a safetensors file, or from the newest sound snapshot in a
/// job's snapshot folder. Throws bad_input if there are none.
std::vector<named_tensor> read_weights(const std::filesystem::path& from);

}  // namespace troupe
