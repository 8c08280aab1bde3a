#include "troupe/saved_weights.hpp"

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/safetensors.hpp"
#include "troupe/snapshot/saved_tensors.hpp"

namespace troupe {

std::vector<named_tensor> read_weights(const std::filesystem::path& from) {
  if (!std::filesystem::is_directory(from)) return read_safetensors(from).tensors;
  snapshot_store store({from});
  std::string problems;
  auto manifest = store.newest_valid([&](const std::string& problem) { problems += " " + problem + ";"; });
  if (!manifest)
    throw bad_input("there is no sound snapshot in '" + from.string() +
                    "': expected a safetensors file, or the folder that a job's --snapshot-dir named;" +
                    problems);
  return saved_tensors(store, *manifest, saved_part::weights);
}

}  // namespace troupe
