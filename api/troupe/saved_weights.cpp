#include "troupe/saved_weights.hpp"

#include <system_error>

#include "troupe/error/errors.hpp"
#include "troupe/snapshot/safetensors.hpp"
#include "troupe/snapshot/saved_tensors.hpp"

namespace troupe {

namespace {

constexpr auto what_to_name = "Name a safetensors file, or the folder that a job's --snapshot-dir named";

bool is_folder(const std::filesystem::path& path) {
  std::error_code problem;
  auto type = std::filesystem::status(path, problem).type();
  if (type == std::filesystem::file_type::none)
    throw bad_input("cannot read '" + path.string() + "': " + problem.message() + ". " + what_to_name);
  return type == std::filesystem::file_type::directory;
}

}  // namespace

std::vector<named_tensor> read_weights(const std::filesystem::path& from) {
  if (!is_folder(from)) return read_safetensors(from).tensors;
  snapshot_store store({from});
  std::string problems;
  auto manifest = store.newest_valid(
      [&](const std::string& problem) { problems += (problems.empty() ? "" : "; ") + problem; });
  if (manifest) return saved_tensors(store, *manifest, saved_part::weights);
  if (problems.empty())
    throw bad_input("there is no complete snapshot in the folder '" + from.string() + "'. " + what_to_name);
  throw bad_input("no snapshot in the folder '" + from.string() + "' can be used: " + problems + ". " +
                  what_to_name);
}

}  // namespace troupe
