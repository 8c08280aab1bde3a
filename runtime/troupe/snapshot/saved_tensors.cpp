#include "troupe/snapshot/saved_tensors.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// Neither what an optimizer keeps nor what the runtime notes for itself.
bool is_weight(const std::string& name) {
  return name.find('/') == std::string::npos && !name.starts_with("troupe.");
}

}  // namespace

std::vector<named_tensor> saved_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                        saved_part which) {
  std::vector<named_tensor> result;
  for (std::uint32_t stage = 0; stage < manifest.num_stages; ++stage)
    for (auto& each : store.read_part(manifest, stage).tensors)
      if (which == saved_part::all || is_weight(each.name)) result.push_back(std::move(each));
  std::ranges::sort(result, {}, &named_tensor::name);
  return result;
}

}  // namespace troupe
