#pragma once
#include <filesystem>
#include <vector>

#include "troupe/safetensors/safetensors.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Reads a model's weights from
/// - a safetensors file;
/// - a model in several of them: its index (*.safetensors.index.json, or *.safetensors.index.VARIANT.json),
///   or the folder with it (the variant's only if there is no other);
/// - a folder with one safetensors file;
/// - a snapshot folder: the newest intact snapshot, sorted by name.
///
/// Throws bad_input
/// - if there are none;
/// - for a folder with both an index and the whole file of that name;
/// - for one shard of several (read_safetensors reads it);
/// - for tensors of dtypes that are none here, unless `options` say what to do with them.
std::vector<named_tensor> read_weights(const std::filesystem::path& from,
                                       const safetensors_options& options = {});

}  // namespace troupe
