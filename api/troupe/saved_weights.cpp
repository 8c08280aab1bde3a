#include "troupe/saved_weights.hpp"

#include <string_view>
#include <system_error>

#include "troupe/error/errors.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/snapshot/folder_layout.hpp"
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

constexpr std::string_view file_ending = ".safetensors", index_ending = ".safetensors.index.json";

/// "model.safetensors.index.fp16.json": the index of a variant of the model.
bool is_variant_index(std::string_view name) {
  return name.find(".safetensors.index.") != std::string_view::npos && name.ends_with(".json") &&
         !name.ends_with(index_ending);
}

/// What torch.save writes, most of all of Hugging Face's models.
bool is_of_torch(std::string_view name) {
  return name.ends_with(".bin") || name.ends_with(".pt") || name.ends_with(".pth");
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// "model-00001-of-00002.safetensors": one of several files of a model.
bool is_shard(std::string_view name) {
  if (!name.ends_with(file_ending)) return false;
  name.remove_suffix(file_ending.size());
  auto of = name.rfind("-of-");
  if (of == std::string_view::npos || !is_number(name.substr(of + 4))) return false;
  auto number = name.substr(0, of);
  auto total = name.substr(of + 4);
  return is_number(number.substr(number.rfind('-') + 1)) &&
         total.find_first_not_of('0') != std::string_view::npos &&
         total.substr(total.find_first_not_of('0')) != "1";
}

std::vector<named_tensor> read_file(const std::filesystem::path& file, const safetensors_options& options) {
  auto name = file.filename().string();
  if (name.ends_with(index_ending) || is_variant_index(name))
    return read_sharded_safetensors(file, options).tensors;
  if (is_shard(name))
    throw bad_input(file.string() + " is one shard of a model's weights: name the model's index, *" +
                    std::string(index_ending) + ", or the folder with it and all shards");
  return read_safetensors(file, options).tensors;
}

/// The index in a folder of a model, or its only safetensors file; empty if there is neither.
std::filesystem::path model_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files, indices, variants;
  std::string of_torch;
  std::error_code problem;
  for (auto entry = std::filesystem::directory_iterator(folder, problem);
       !problem && entry != std::filesystem::directory_iterator(); entry.increment(problem)) {
    auto name = entry->path().filename().string();
    if (name.ends_with(index_ending)) indices.push_back(entry->path());
    if (is_variant_index(name)) variants.push_back(entry->path());
    if (name.ends_with(file_ending)) files.push_back(entry->path());
    if (is_of_torch(name)) of_torch = name;
  }
  auto refuse = [&](const std::string& found) {
    throw bad_input("the folder '" + folder.string() + "' has " + found + ": name the one to read");
  };
  if (indices.empty()) indices = variants;
  if (indices.size() > 1) refuse(std::to_string(indices.size()) + " indices of safetensors files");
  if (indices.size() == 1) {
    // The rest of the index's name: both may be the model, and need not be the same.
    auto whole = indices.front().filename().string();
    whole = whole.substr(0, whole.find(".index."));
    for (const auto& file : files)
      if (file.filename() == whole)
        refuse("both " + whole + " and " + indices.front().filename().string() +
               ", which may be different models");
    return indices.front();
  }
  if (files.size() > 1) refuse(std::to_string(files.size()) + " safetensors files and no index");
  if (files.empty() && !of_torch.empty())
    throw bad_input("the folder '" + folder.string() + "' has no safetensors file, but " + of_torch +
                    ", which torch.save writes. Load it in Python, and save the state_dict with "
                    "safetensors.torch.save_file");
  return files.empty() ? std::filesystem::path() : files.front();
}

}  // namespace

std::vector<named_tensor> read_weights(const std::filesystem::path& from,
                                       const safetensors_options& options) {
  if (!is_folder(from)) return read_file(from, options);
  snapshot::require_no_snapshot(from);
  snapshot::snapshot_store store({from});
  std::string problems;
  auto manifest = store.newest_valid(
      [&](const std::string& problem) { problems += (problems.empty() ? "" : "; ") + problem; });
  if (manifest) return saved_tensors(store, *manifest, snapshot::saved_part::weights);
  if (auto model = problems.empty() ? model_in(from) : std::filesystem::path(); !model.empty())
    return read_file(model, options);
  if (problems.empty())
    throw bad_input("there is no complete snapshot in the folder '" + from.string() + "'. " + what_to_name);
  throw bad_input("no snapshot in the folder '" + from.string() + "' can be used: " + problems + ". " +
                  what_to_name);
}

}  // namespace troupe
