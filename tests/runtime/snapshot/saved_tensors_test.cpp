#include "troupe/snapshot/saved_tensors.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "example_parts.hpp"
#include "support/temp_folder.hpp"
#include "troupe/files/snapshot_error.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;
using namespace troupe::testing;

namespace {

/// A snapshot of two stages that both hold "tied.weight", with these elements, and a loss scale.
snapshot_manifest write_tied(snapshot_store& store, std::vector<float> elements) {
  std::vector<manifest_part> parts;
  for (int stage = 0; stage < 2; ++stage) {
    auto part = example_part(5, stage, 2);
    part.tensors = {{std::to_string(stage) + ".weight", tensor::full({2}, 1)},
                    {"tied.weight", tensor::full({3}, elements[stage])},
                    {"loss_scaler/scale", tensor::full({}, 8)}};
    parts.push_back(store.write_part(5, {stage}, encode_part(part).bytes()));
  }
  auto manifest = example_manifest(5, std::move(parts));
  store.commit(manifest);
  return manifest;
}

std::vector<std::string> names_of(const std::vector<named_tensor>& tensors) {
  std::vector<std::string> names;
  for (const auto& each : tensors) names.push_back(each.name);
  return names;
}

}  // namespace

TEST_CASE("tensors that several stages share are listed once") {
  temp_folder folder;
  snapshot_store store({folder.path() / "snapshots"});
  store.prepare();
  auto manifest = write_tied(store, {7, 7});
  CHECK(names_of(saved_tensors(store, manifest, saved_part::weights)) ==
        std::vector<std::string>{"0.weight", "1.weight", "tied.weight"});
  CHECK(names_of(saved_tensors(store, manifest, saved_part::all)) ==
        std::vector<std::string>{"0.weight", "1.weight", "loss_scaler/scale", "tied.weight"});
}

TEST_CASE("a shared tensor that differs between stages is an error that names it") {
  temp_folder folder;
  snapshot_store store({folder.path() / "snapshots"});
  store.prepare();
  auto manifest = write_tied(store, {7, 8});
  CHECK_THROWS_AS(saved_tensors(store, manifest, saved_part::weights), files::snapshot_error);
  CHECK_THROWS_WITH(saved_tensors(store, manifest, saved_part::weights), ContainsSubstring("tied.weight"));
}
