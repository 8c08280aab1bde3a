#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/files/open_file.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/json/read_json.hpp"
#include "troupe/safetensors/safetensors.hpp"

namespace troupe {
namespace {

/// The names of the tensors in each shard.
using shard_map = std::map<std::string, std::set<std::string>>;

constexpr std::uint64_t max_index_bytes = 100'000'000;
constexpr int deepest = 8;

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

std::string advice() { return ". If the files were copied or downloaded, do so again, all of one version"; }

}  // namespace

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
