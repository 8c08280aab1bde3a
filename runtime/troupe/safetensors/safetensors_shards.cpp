#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/files/durable_file.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/json/read_json.hpp"
#include "troupe/safetensors/safetensors.hpp"
#include "troupe/safetensors/safetensors_header.hpp"

namespace troupe {
namespace {

/// The names of the tensors in each shard.
using shard_map = std::map<std::string, std::set<std::string>>;

constexpr std::uint64_t max_index_bytes = 100'000'000;
constexpr int deepest = 8;
constexpr std::string_view index_ending = ".safetensors.index.json";

std::string text_of(const std::filesystem::path& index) {
  files::regular_file in(index);
  if (in.size_bytes() > max_index_bytes)
    throw bad_input("expected an index of at most " + std::to_string(max_index_bytes) + " bytes, found " +
                    std::to_string(in.size_bytes()));
  std::string text(in.size_bytes(), '\0');
  in.read_all(std::as_writable_bytes(std::span(text)));
  return text;
}

/// A shard is beside its index.
void check_file_name(const std::string& name) {
  if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
    throw bad_input("expected the names of files in the same folder in its weight_map, found '" + name + "'");
}

shard_map shards_in(const std::filesystem::path& index) {
  return json_text::read_json(text_of(index), deepest, [](const nlohmann::ordered_json& read) {
    if (!read.is_object() || !read.contains("weight_map") || !read["weight_map"].is_object())
      throw bad_input(
          "expected an object with a weight_map, as in model.safetensors.index.json, found another");
    shard_map shards;
    for (const auto& [name, file] : read["weight_map"].items()) {
      auto shard = file.get<std::string>();
      check_file_name(shard);
      shards[shard].insert(name);
    }
    return shards;
  });
}

/// Adds a shard's tensors to `all`.
void add(safetensors_file shard, std::set<std::string> expected, const std::string& file,
         safetensors_file& all) {
  auto take = [&](const std::string& name) {
    if (expected.erase(name) == 0)
      throw bad_input("shard " + file + " has the tensor '" + name +
                      "', which the index does not name there");
  };
  for (const auto& each : shard.tensors) take(each.name);
  for (const auto& each : shard.left_out) take(each.name);
  if (!expected.empty())
    throw bad_input("shard " + file + " has no tensor '" + *expected.begin() +
                    "', which the index names there");
  std::ranges::move(shard.tensors, std::back_inserter(all.tensors));
  std::ranges::move(shard.left_out, std::back_inserter(all.left_out));
  all.metadata.merge(shard.metadata);
}

/// The tensors of each file, in order.
std::vector<std::vector<named_tensor>> divided(const std::vector<named_tensor>& tensors,
                                               std::uint64_t max_file_bytes) {
  std::vector<std::vector<named_tensor>> files(1);
  std::uint64_t in_newest = 0;
  for (const auto& each : tensors) {
    if (!files.back().empty() && in_newest + each.value.size_bytes() > max_file_bytes) {
      files.emplace_back();
      in_newest = 0;
    }
    in_newest += each.value.size_bytes();
    files.back().push_back(each);
  }
  return files;
}

/// "model-00001-of-00003.safetensors"
std::string name_of_file(const std::string& model, std::size_t number, std::size_t count) {
  auto five_digits = [](std::size_t value) {
    auto text = std::to_string(value);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return model + "-" + five_digits(number) + "-of-" + five_digits(count) + ".safetensors";
}

/// The files that an index names; none if it cannot be read.
std::set<std::string> named_by(const std::filesystem::path& index) {
  std::set<std::string> names;
  try {
    for (const auto& [file, tensors] : shards_in(index))
      if (file.ends_with(".safetensors")) names.insert(file);
  } catch (const std::exception&) {  // there is none, or another's: its files stay
    names.clear();
  }
  return names;
}

void write_index(const std::filesystem::path& index, const nlohmann::ordered_json& weight_map,
                 std::uint64_t total_size) {
  auto text =
      nlohmann::ordered_json{{"metadata", {{"total_size", total_size}}}, {"weight_map", weight_map}}.dump(2) +
      "\n";
  files::write_durably(index, std::as_bytes(std::span(text)));
}

std::string advice() { return ". If the files were copied or downloaded, do so again, all of one version"; }

}  // namespace

bool is_safetensors_index(const std::filesystem::path& file) {
  auto name = file.filename().string();
  return name.size() > index_ending.size() && name.ends_with(index_ending);
}

void write_sharded_safetensors(const std::filesystem::path& index, const std::vector<named_tensor>& tensors,
                               std::uint64_t max_file_bytes,
                               const std::map<std::string, std::string>& metadata) {
  constexpr const char* operation = "write_sharded_safetensors";
  auto name = index.filename().string();
  if (!is_safetensors_index(index))
    throw_invalid(operation, "an index NAME" + std::string(index_ending), "'" + name + "'");
  if (max_file_bytes == 0) throw_invalid(operation, "files of more than 0 bytes", "0");
  safetensors::check_tensors(operation, tensors);
  auto model = name.substr(0, name.size() - index_ending.size());
  auto files = divided(tensors, max_file_bytes);
  auto weight_map = nlohmann::ordered_json::object();
  std::uint64_t total_size = 0;
  try {
    auto old = named_by(index);
    files::require_replaceable(index);
    files::remove_durably(index);
    for (std::size_t i = 0; i < files.size(); ++i) {
      auto file = name_of_file(model, i + 1, files.size());
      write_safetensors(index.parent_path() / file, files[i], metadata);
      old.erase(file);
      for (const auto& each : files[i]) {
        weight_map[each.name] = file;
        total_size += each.value.size_bytes();
      }
    }
    write_index(index, weight_map, total_size);
    for (const auto& file : old) files::remove_durably(index.parent_path() / file);
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  }
}

safetensors_file read_sharded_safetensors(const std::filesystem::path& index,
                                          const safetensors_options& options) {
  auto failed = [&](const std::string& problem) {
    return bad_input("cannot read the model of the index " + index.string() + ": " + problem);
  };
  shard_map shards;
  try {
    shards = shards_in(index);
  } catch (const files::snapshot_error& problem) {
    throw bad_input(problem.what());
  } catch (const json_text::json_error& problem) {
    throw failed(problem.what() + advice());
  } catch (const bad_input& problem) {
    throw failed(problem.what() + advice());
  }
  safetensors_file all;
  std::size_t number = 0;
  for (auto& [file, names] : shards) {
    ++number;
    auto path = index.parent_path() / file;
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
      throw failed("shard " + std::to_string(number) + " of " + std::to_string(shards.size()) + ", " + file +
                   ", is missing in its folder" + advice());
    auto shard = read_safetensors(path, options);
    try {
      add(std::move(shard), std::move(names), file, all);
    } catch (const bad_input& problem) {
      throw failed(problem.what() + advice());
    }
  }
  return all;
}

}  // namespace troupe
