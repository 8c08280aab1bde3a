#include "troupe/snapshot/read_tensors.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <map>
#include <numeric>
#include <random>

#include "../layout/drawn_contents.hpp"
#include "example_parts.hpp"
#include "support/temp_folder.hpp"
#include "troupe/contents/step_counts.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::snapshot;
using namespace troupe::testing;

namespace {

/// Elements 0, 1, 2, ... and a number for each tensor.
tensor numbered(const shape& extents, std::int64_t first) {
  std::vector<float> elements(static_cast<std::size_t>(extents.num_elements()));
  std::iota(elements.begin(), elements.end(), static_cast<float>(first));
  return tensor::from(elements, extents);
}

/// The elements of `held`, one by one.
tensor elements_held(const tensor_contents& held, const tensor& whole) {
  std::vector<float> elements;
  auto all = whole.values<float>();
  for (const auto& one : boxes_held(held))
    for (std::int64_t at = 0; at < num_elements(one); ++at) {
      std::int64_t rest = at, index = 0, stride = 1;
      for (auto axis = one.extent.size(); axis-- > 0;) {
        index += (one.offset[axis] + rest % one.extent[axis]) * stride;
        rest /= one.extent[axis];
        stride *= held.whole[axis];
      }
      elements.push_back(all[static_cast<std::size_t>(index)]);
    }
  return tensor::from(elements, stored_shape(held));
}

/// A model of a few tensors, and a layout of it that some job has.
using drawn_layout = std::map<layout::part_id, std::vector<tensor_contents>>;

drawn_layout draw_layout(const std::vector<named_tensor>& model, std::mt19937_64& random) {
  drawn_layout made;
  auto num_stages = static_cast<int>(random() % 3 + 1);
  for (int stage = 0; stage < num_stages; ++stage) made[{{.stage = stage}}];  // some hold nothing
  for (const auto& [name, value] : model) {
    auto stage = static_cast<int>(random() % static_cast<unsigned>(num_stages));
    for (const auto& [part, held] : drawn_pieces(name, value.shape(), stage, random))
      made[part].push_back(held);
  }
  return made;
}

snapshot_manifest write(snapshot_store& store, const std::vector<named_tensor>& model,
                        const drawn_layout& layout) {
  snapshot_manifest manifest = example_manifest(5, {});
  manifest.num_stages = static_cast<std::uint32_t>(layout.rbegin()->first.cell.stage + 1);
  for (const auto& [id, contents] : layout) {
    snapshot_part part{"job-7", 5, id, manifest.num_stages, 3, "avx2", {}, contents};
    for (const auto& held : contents)
      part.tensors.push_back(
          {held.name, elements_held(held, std::ranges::find(model, held.name, &named_tensor::name)->value)});
    manifest.parts.push_back(store.write_part(5, id, encode_part(part).bytes()));
  }
  store.commit(manifest);
  return manifest;
}

}  // namespace

TEST_CASE("what a job in one layout wrote is read by a job in any other, bit by bit") {
  std::mt19937_64 random(4);
  temp_folder folder;
  for (int drawn = 0; drawn < 40; ++drawn) {
    INFO("drawn " << drawn);
    std::vector<named_tensor> model;
    for (int number = 0; number < 4; ++number)
      model.push_back({std::to_string(number) + ".weight", numbered(drawn_shape(random), number * 1000)});
    snapshot_store store({folder.path() / std::to_string(drawn)});
    write(store, model, draw_layout(model, random));
    auto manifest = store.find().found.value();
    for (const auto& [id, wanted] : draw_layout(model, random)) {
      auto read = read_tensors(store, manifest, wanted, id);
      REQUIRE(read.size() == wanted.size());
      for (std::size_t at = 0; at < wanted.size(); ++at) {
        const auto& whole = std::ranges::find(model, wanted[at].name, &named_tensor::name)->value;
        REQUIRE(same_tensors({read[at]}, {{wanted[at].name, elements_held(wanted[at], whole)}}));
      }
    }
  }
}

TEST_CASE("only parts that are needed are read") {
  temp_folder folder;
  snapshot_store store({folder.path() / "snapshots"});
  auto manifest = write_snapshot(store, 10, 3);
  std::filesystem::remove(folder.path() / "snapshots" / "step-000000000010" / "stage-0002.part");
  auto wanted = whole_contents(example_part(10, 1, 3).tensors);
  CHECK(same_tensors(read_tensors(store, manifest, wanted, {{1}}), example_part(10, 1, 3).tensors));
  wanted = whole_contents(example_part(10, 2, 3).tensors);
  CHECK_THROWS_WITH(read_tensors(store, manifest, wanted, {{1}}), ContainsSubstring("stage-0002.part"));
}

TEST_CASE("a tensor that the snapshot lacks, or has in another form, is named") {
  temp_folder folder;
  snapshot_store store({folder.path() / "snapshots"});
  auto manifest = write_snapshot(store, 10);
  auto read = [&](const named_tensor& wanted) {
    return read_tensors(store, manifest, {whole_contents(wanted)});
  };
  CHECK_THROWS_WITH(read({"2.weight", tensor::zeros({3})}),
                    ContainsSubstring("no part of the snapshot of step 10 holds [0:3] of 2.weight (f32[3])"));
  CHECK_THROWS_WITH(read({"1.weight", tensor::zeros({3})}),
                    ContainsSubstring("stage 1 of the snapshot holds 1.weight as f32[100], but f32[3]"));
}

TEST_CASE("counts of steps that a snapshot of an earlier format lacks are those of the job") {
  temp_folder folder;
  snapshot_store store({folder.path() / "snapshots"});
  auto manifest = write_snapshot(store, 10);
  auto wanted = whole_contents({"0.weight/step", tensor::zeros({}, dtype::i64)});
  CHECK_THROWS_WITH(read_tensors(store, manifest, {wanted}), ContainsSubstring("no part of the snapshot"));
  manifest.counts_steps = false;
  CHECK(read_tensors(store, manifest, {wanted})[0].value.values<std::int64_t>()[0] == unknown_steps);
  wanted.type = dtype::f32;
  CHECK_THROWS_WITH(read_tensors(store, manifest, {wanted}), ContainsSubstring("no part of the snapshot"));
}

TEST_CASE("what belongs to a replica is read for this replica only") {
  temp_folder folder;
  snapshot_store store({folder.path() / "snapshots"});
  std::vector<manifest_part> parts;
  for (int replica : {0, 1}) {
    auto part = example_part(5, 0, 1);
    part.part.cell.replica = replica;
    part.tensors = {{"0.weight", tensor::full({2}, 7)},
                    {"0.running_mean", tensor::full({2}, static_cast<float>(replica))}};
    part.contents = whole_contents(part.tensors);
    part.contents[1].replica = replica;
    parts.push_back(store.write_part(5, part.part, encode_part(part).bytes()));
  }
  auto manifest = example_manifest(5, std::move(parts));
  manifest.num_stages = 1;
  store.commit(manifest);
  CHECK(std::filesystem::exists(folder.path() / "snapshots" / "step-000000000005" /
                                "stage-0000-replica-0001.part"));
  auto wanted = whole_contents({"0.running_mean", tensor::zeros({2})});
  for (int replica : {0, 1}) {
    wanted.replica = replica;
    CHECK(read_tensors(store, manifest, {wanted})[0].value.values<float>()[0] == static_cast<float>(replica));
  }
  wanted.replica = 2;
  CHECK_THROWS_WITH(read_tensors(store, manifest, {wanted}), ContainsSubstring("no part"));
}

TEST_CASE("a replica in another partition gets its own values of what its parts hold, and not another's") {
  // Running means and optimizer states of two replicas of two stages, which no part marks as of a replica.
  temp_folder folder;
  snapshot_store store({folder.path() / "snapshots"});
  auto value_of = [](int stage, int replica) {
    return tensor::full({2}, static_cast<float>(10 * stage + replica));
  };
  auto name_of = [](int stage) { return std::to_string(stage) + ".running_mean"; };
  std::vector<manifest_part> parts;
  for (int stage : {0, 1})
    for (int replica : {0, 1}) {
      auto part = example_part(5, stage, 2);
      part.part.cell.replica = replica;
      part.tensors = {{name_of(stage), value_of(stage, replica)}};
      part.contents = whole_contents(part.tensors);
      parts.push_back(store.write_part(5, part.part, encode_part(part).bytes()));
    }
  auto manifest = example_manifest(5, std::move(parts));
  manifest.num_stages = 2;
  store.commit(manifest);
  std::vector<tensor_contents> all;
  for (int stage : {0, 1}) all.push_back(whole_contents(named_tensor{name_of(stage), tensor::zeros({2})}));
  for (int replica : {0, 1}) {
    CAPTURE(replica);
    std::vector<named_tensor> own;
    for (int stage : {0, 1}) own.push_back({name_of(stage), value_of(stage, replica)});
    // One stage instead of two, and three: the part of stage 2 is not in the snapshot.
    CHECK(same_tensors(read_tensors(store, manifest, all, {{.stage = 0, .replica = replica}}), own));
    CHECK(
        same_tensors(read_tensors(store, manifest, {all[1]}, {{.stage = 2, .replica = replica}}), {own[1]}));
    CHECK(
        same_tensors(read_tensors(store, manifest, {all[1]}, {{.stage = 0, .replica = replica}}), {own[1]}));
  }
}
