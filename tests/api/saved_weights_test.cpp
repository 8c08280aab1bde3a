#include "troupe/saved_weights.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>

#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/nn/batch_norm.hpp"
#include "troupe/nn/conv2d.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/pipeline/pipeline.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
namespace fs = std::filesystem;

namespace {

/// The reason, and what to name instead.
void check_refused(const fs::path& from, const std::string& reason) {
  INFO(from);
  CHECK_THROWS_MATCHES(read_weights(from), bad_input,
                       MessageMatches(ContainsSubstring(from.string()) && ContainsSubstring(reason)));
}

}  // namespace

TEST_CASE("weights of a folder without a snapshot are refused with what to name") {
  testing::temp_folder folder;
  check_refused(folder.path(), "there is no complete snapshot in the folder");
  check_refused(folder.path(), "Name a safetensors file, or the folder that a job's --snapshot-dir named");
}

TEST_CASE("weights of a folder whose snapshot is damaged are refused with what is wrong, then what to name") {
  testing::temp_folder folder;
  fs::create_directory(folder.path() / "step-000000000004");
  std::ofstream(folder.path() / "step-000000000004" / "manifest.json") << "{";
  check_refused(folder.path(), "can be used: the snapshot of step 4");
  check_refused(folder.path(), ". Name a safetensors file");
}

TEST_CASE("weights behind a path that cannot be followed are refused as bad input") {
  testing::temp_folder folder;
  auto loop = folder.path() / "loop";
  fs::create_symlink(loop, loop);
  check_refused(loop, "Too many levels of symbolic links");
  check_refused(folder.path() / "nowhere", "No such file");
}

TEST_CASE("weights are read from a folder with one file or an index, and by the index itself") {
  testing::temp_folder folder;
  auto a = tensor::from(std::vector<float>{1, 2}, {2}), b = tensor::from(std::vector<float>{3}, {1});
  write_safetensors(folder.path() / "model.safetensors", {{"a", a}, {"b", b}});
  CHECK(testing::same_bits(read_weights(folder.path()), {{"a", a}, {"b", b}}));
  write_safetensors(folder.path() / "other.safetensors", {{"a", b}});
  check_refused(folder.path(), "has 2 safetensors files and no index: name the one to read");
  fs::remove(folder.path() / "model.safetensors");
  fs::remove(folder.path() / "other.safetensors");

  auto first = folder.path() / "model-00001-of-00002.safetensors";
  auto index = folder.path() / "model.safetensors.index.json";
  write_safetensors(first, {{"a", a}});
  check_refused(first, "is one shard of a model's weights: name the model's index");
  std::ofstream(index) << R"({"weight_map":{"a":"model-00001-of-00002.safetensors",)"
                       << R"("b":"model-00002-of-00002.safetensors"}})";
  check_refused(folder.path(), "shard 2 of 2, model-00002-of-00002.safetensors, is missing");
  write_safetensors(folder.path() / "model-00002-of-00002.safetensors", {{"b", b}});
  for (const auto& from : {folder.path(), index})
    CHECK(testing::same_bits(read_weights(from), {{"a", a}, {"b", b}}));
  auto variant = folder.path() / "model.safetensors.index.fp16.json";
  fs::copy_file(index, variant);
  for (const auto& from : {folder.path(), variant})
    CHECK(testing::same_bits(read_weights(from), {{"a", a}, {"b", b}}));
  fs::remove(index);
  CHECK(testing::same_bits(read_weights(folder.path()), {{"a", a}, {"b", b}}));
  fs::copy_file(variant, index);
  write_safetensors(folder.path() / "model.safetensors", {{"a", b}});
  check_refused(folder.path(),
                "has both model.safetensors and model.safetensors.index.json, which may be different");
  fs::remove(folder.path() / "model.safetensors");
  write_safetensors(folder.path() / "consolidated.safetensors", {{"a", b}});
  CHECK(testing::same_bits(read_weights(folder.path()), {{"a", a}, {"b", b}}));
  fs::copy_file(index, folder.path() / "second.safetensors.index.json");
  check_refused(folder.path(), "has 2 indices");
  write_safetensors(folder.path() / "model-00001-of-00001.safetensors", {{"a", a}});
  CHECK(read_weights(folder.path() / "model-00001-of-00001.safetensors").size() == 1);
}

TEST_CASE("a folder with files of torch.save only is refused with how to convert them") {
  testing::temp_folder folder;
  std::ofstream(folder.path() / "config.json") << "{}";
  std::ofstream(folder.path() / "pytorch_model.bin") << "PK";
  check_refused(folder.path(), "has no safetensors file, but pytorch_model.bin, which torch.save writes");
}

TEST_CASE("weights of PyTorch's with counts of batches are loaded, and begin a pipeline") {
  nn::Sequential model(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2));
  model.materialize(1);
  auto weights = model.state_dict();
  auto with_counts = weights;
  with_counts.push_back({"1.num_batches_tracked", tensor::from(std::vector<std::int64_t>{7}, {})});
  nn::Sequential other(nn::Conv2d(1, 2, 3), nn::BatchNorm2d(2));
  other.materialize(2);
  auto unmatched = other.load_state_dict(with_counts);
  CHECK(unmatched.unexpected.empty());
  CHECK(testing::same_bits(other.state_dict(), weights));
  auto pipeline = Pipeline(model, job_options()).initial_weights(with_counts);
  CHECK(pipeline.initial_weights()->size() == weights.size());
  // Counts of something else are no counts of a batch norm.
  with_counts.back().name = "0.num_batches_tracked";
  CHECK_THROWS_WITH(other.load_state_dict(with_counts), ContainsSubstring("0.num_batches_tracked"));
}
