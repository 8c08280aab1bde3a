#include "troupe/snapshot/saved_tensors.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// False for the optimizer's state and for tensors of the runtime.
bool is_weight(const std::string& name) {
  return name.find('/') == std::string::npos && !name.starts_with("troupe.");
}

/// Merges equal names, which several stages hold (a tied weight).
void unite(std::vector<named_tensor>& sorted) {
  auto is_same = [](const named_tensor& a, const named_tensor& b) {
    if (a.name != b.name) return false;
    if (a.value.dtype() != b.value.dtype() || a.value.shape() != b.value.shape() ||
        !std::ranges::equal(a.value.bytes(), b.value.bytes()))
      throw snapshot_error("stages of the snapshot hold different values of " + a.name +
                           ", which must be equal: use another snapshot");
    return true;
  };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), is_same), sorted.end());
}

}  // namespace

std::vector<named_tensor> saved_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                        saved_part which) {
  std::vector<named_tensor> result;
  for (std::uint32_t stage = 0; stage < manifest.num_stages; ++stage)
    for (auto& each : store.read_part(manifest, stage).tensors)
      if (which == saved_part::all || is_weight(each.name)) result.push_back(std::move(each));
  std::ranges::stable_sort(result, {}, &named_tensor::name);
  unite(result);
  return result;
}

}  // namespace troupe
