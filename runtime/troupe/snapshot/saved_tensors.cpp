#include "troupe/snapshot/saved_tensors.hpp"

#include <map>

#include "troupe/snapshot/read_tensors.hpp"

namespace troupe::snapshot {
namespace {

/// All of the model's tensors, from the manifest where it lists them.
std::map<std::string, tensor_contents> tensors_of(const snapshot_store& store,
                                                  const snapshot_manifest& manifest) {
  std::map<std::string, tensor_contents> all;
  for (const auto& entry : manifest.parts) {
    auto contents = entry.contents ? *entry.contents : store.open_part(manifest, entry.part).contents();
    for (auto& held : contents) {
      shape whole(held.whole);
      all.try_emplace(
          held.name,
          tensor_contents{
              held.name, held.type, held.whole, {whole_box(whole)}, 0, whole.num_elements(), held.replica});
    }
  }
  return all;
}

}  // namespace

bool is_weight_name(const std::string& name) {
  return name.find('/') == std::string::npos && !name.starts_with("troupe.");
}

std::vector<named_tensor> saved_tensors(const snapshot_store& store, const snapshot_manifest& manifest,
                                        saved_part which) {
  std::vector<tensor_contents> wanted;
  for (auto& [name, whole] : tensors_of(store, manifest))
    if (which == saved_part::all || is_weight_name(name)) wanted.push_back(std::move(whole));
  return read_tensors(store, manifest, wanted);
}

}  // namespace troupe::snapshot
