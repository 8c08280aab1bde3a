#include "troupe/pipeline/detail/parameters/parameter_shards.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <numeric>
#include <stdexcept>

#include "support/bits.hpp"
#include "troupe/layout/cover.hpp"

using namespace troupe;
using namespace troupe::detail;
using troupe::testing::same_bits;

namespace {

constexpr std::int64_t block = layout::shard_block;

/// Of one replica: a weight of three blocks and one element, one block, a small one, a frozen one, none.
struct stage_parameters_of_replica {
  stage_parameters_of_replica() {
    add("a", {3 * block + 1});
    add("b", {block});
    add("c", {7});
    add("d", {2, block});
    add("e", {0});
    made[3].requires_gradient = false;
  }
  void add(const char* name, shape extents) {
    made.emplace_back(name, tensor::zeros(extents), tensor::zeros(extents));
    named.push_back({name, &made.back()});
  }
  void fill(float first) {
    for (auto& each : made)
      for (auto& value : each.value().values<float>()) value = first++;
  }
  std::deque<parameter> made;
  std::vector<named_parameter> named;
};

const std::vector<std::size_t> by_use = {2, 0, 1, 4, 3};

}  // namespace

TEST_CASE("pieces are views of the parameters, of which each replica owns some") {
  stage_parameters_of_replica of;
  parameter_shards shards(of.named, by_use, {.index = 1, .count = 2});
  std::int64_t owned = 0, all = 0;
  for (std::size_t piece = 0; piece < shards.pieces().size(); ++piece) {
    const auto& [name, target] = shards.pieces()[piece];
    const auto& whole = shards.whole_of(piece);
    CHECK(name == whole.name);
    CHECK(target->requires_gradient == whole.requires_gradient);
    CHECK(target->value().bytes().data() ==
          whole.value().bytes().data() + static_cast<std::size_t>(shards.first_of(piece)) * sizeof(float));
    all += target->extents.num_elements();
    owned += shards.is_owned(piece) ? target->extents.num_elements() : 0;
  }
  CHECK(all == 3 * block + 1 + block + 7 + 2 * block);
  CHECK(owned > all / 2 - block);
  CHECK(owned < all / 2 + block);
  CHECK(shards.owned().size() < shards.pieces().size());
}

TEST_CASE("what replicas send of their weights makes those of all whole") {
  for (int count : {1, 2, 5}) {
    std::deque<stage_parameters_of_replica> replicas(static_cast<std::size_t>(count));
    std::deque<parameter_shards> shards;
    for (int index = 0; index < count; ++index) {
      auto& one = replicas[static_cast<std::size_t>(index)];
      one.fill(static_cast<float>(1000 * index));
      shards.emplace_back(one.named, by_use, owned_shard{.index = index, .count = count});
    }
    auto buckets = shards.front().weight_buckets();
    bool was_stepped = true;
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      CHECK((was_stepped || !buckets[bucket].is_stepped));  // what no step changes comes last
      was_stepped = buckets[bucket].is_stepped;
      auto number = static_cast<int>(bucket);
      auto sent = shards[static_cast<std::size_t>(buckets[bucket].owner)].weights_in(number).clone();
      for (int index = 0; index < count; ++index)
        if (index != buckets[bucket].owner)
          shards[static_cast<std::size_t>(index)].take_weights(number, sent);
    }
    for (const auto& one : replicas)
      for (std::size_t index = 0; index < one.made.size(); ++index)
        CHECK(same_bits(one.made[index].value(), replicas.front().made[index].value()));
  }
}

TEST_CASE("where values are freed a replica holds its pieces, and all between attach and release alone") {
  for (int count : {2, 5}) {
    std::deque<stage_parameters_of_replica> replicas(static_cast<std::size_t>(count));
    std::deque<parameter_shards> shards;
    std::vector<tensor> expected(replicas.front().made.size());
    for (int index = 0; index < count; ++index) {
      auto& one = replicas[static_cast<std::size_t>(index)];
      one.fill(static_cast<float>(1000 * index));
      for (std::size_t number = 0; number < expected.size(); ++number)
        if (index == 0) expected[number] = one.made[number].value().clone();
      auto& made = shards.emplace_back(
          one.named, by_use,
          owned_shard{.index = index, .count = count, .frees_gradients = true, .frees_values = true});
      for (std::size_t piece = 0; piece < made.pieces().size(); ++piece)
        if (made.is_owned(piece)) {
          auto found = std::ranges::find(one.made, &made.whole_of(piece), [](auto& each) { return &each; });
          auto which = static_cast<std::size_t>(found - one.made.begin());
          auto elements = made.pieces()[piece].target->value();
          auto rows = expected[which].reshape({expected[which].num_elements()});
          rows.rows(made.first_of(piece), elements.num_elements())
              .copy_from(elements.reshape({elements.num_elements()}));
        }
      made.release_values();
    }
    auto gather = [&] {
      for (auto& each : shards) each.attach_values();
      auto buckets = shards.front().weight_buckets();
      for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket)
        for (int index = 0; index < count; ++index)
          if (index != buckets[bucket].owner) {
            auto& owner = shards[static_cast<std::size_t>(buckets[bucket].owner)];
            shards[static_cast<std::size_t>(index)].take_weights(static_cast<int>(bucket),
                                                                 owner.weights_in(static_cast<int>(bucket)));
          }
    };
    for (int pass = 0; pass < 2; ++pass) {
      for (auto& one : replicas)
        for (auto& each : one.made) CHECK_FALSE(each.value().defined());
      auto version = replicas.back().made.front().version();
      gather();
      for (auto& one : replicas)
        for (std::size_t number = 0; number < expected.size(); ++number)
          CHECK(same_bits(one.made[number].value(), expected[number]));
      CHECK(replicas.back().made.front().version() == version);  // what a forward has saved stays valid
      for (auto& each : shards) each.release_values();
    }
    // An owner's step is in the next U.
    for (std::size_t piece = 0; piece < shards.front().pieces().size(); ++piece) {
      auto owner = std::ranges::find_if(shards, [piece](auto& each) { return each.is_owned(piece); });
      owner->pieces()[piece].target->value().fill_zero();
    }
    gather();
    for (auto& one : replicas)
      for (auto& each : one.made) CHECK(same_bits(each.value(), tensor::zeros(each.extents)));
  }
}

TEST_CASE("parameters that share a value get and lose it together") {
  stage_parameters_of_replica of;
  of.made.emplace_back("a2", of.made[0].value(), tensor::zeros(of.made[0].extents));
  parameter_shards shards(of.named, by_use,
                          {.index = 0, .count = 2, .frees_gradients = true, .frees_values = true},
                          {{of.named[0], {"a2", &of.made.back()}}});
  shards.release_values();
  CHECK_FALSE(of.made.back().value().defined());
  shards.attach_values();
  CHECK(of.made.back().value().bytes().data() == of.made[0].value().bytes().data());
}

TEST_CASE("a parameter is gathered when its last part has come, and weights of another size are refused") {
  stage_parameters_of_replica of;
  parameter_shards shards(of.named, by_use, {.index = 0, .count = 2});
  auto buckets = shards.weight_buckets();
  std::vector<int> missing;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket)
    if (buckets[bucket].owner != 0) missing.push_back(static_cast<int>(bucket));
  stage_parameters_of_replica other;
  parameter_shards others(other.named, by_use, {.index = 1, .count = 2});
  shards.begin_gather(missing);
  CHECK_FALSE(shards.is_gathered(0));
  auto version = of.made[0].version();
  for (auto bucket : missing) shards.take_weights(bucket, others.weights_in(bucket));
  for (std::size_t index = 0; index < of.named.size(); ++index) CHECK(shards.is_gathered(index));
  CHECK(of.made[0].version() > version);
  CHECK_THROWS_AS(shards.take_weights(missing.front(), tensor::zeros({1})), std::logic_error);
}

TEST_CASE("the shards' contents hold each element once, and the optimizer's beside them") {
  for (auto granularity : {layout::shard_granularity::blocks, layout::shard_granularity::tensors}) {
    stage_parameters_of_replica of;
    std::vector<std::vector<tensor_contents>> contents;
    for (int index = 0; index < 3; ++index) {
      parameter_shards shards(of.named, by_use, {.index = index, .count = 3, .granularity = granularity});
      auto& held = contents.emplace_back();
      for (const auto& [name, target] : shards.owned()) {
        held.push_back(*shards.contents_of({name, target->value()}));
        held.push_back(*shards.contents_of({name + "/exp_avg", tensor::zeros(target->extents)}));
        CHECK_FALSE(shards.contents_of({name + "/num_steps", tensor::zeros({}, dtype::i64)}));
      }
      CHECK_FALSE(shards.contents_of({"of no parameter", tensor::zeros({7})}));
    }
    std::vector<layout::part_contents> parts;
    for (int index = 0; index < 3; ++index)
      parts.push_back({{{}, index}, contents[static_cast<std::size_t>(index)]});
    CHECK(layout::cover_problem(parts).empty());
    parts.pop_back();
    if (granularity == layout::shard_granularity::blocks) CHECK_FALSE(layout::cover_problem(parts).empty());
  }
}

TEST_CASE("gradients are those of the parameters, wherever these have moved") {
  stage_parameters_of_replica of;
  parameter_shards shards(of.named, by_use, {.index = 0, .count = 2});
  of.made[0].gradient() = tensor::full({3 * block + 1}, 2);
  of.made[0].has_gradient = true;
  shards.take_gradients();
  auto [first, end] = shards.pieces_of(of.made[0]);
  REQUIRE(end == first + 2);
  for (auto piece = first; piece < end; ++piece) {
    CHECK(shards.pieces()[piece].target->has_gradient);
    CHECK(shards.pieces()[piece].target->gradient().values<float>()[0] == 2);
  }
  shards.mark_stepped();
  CHECK_FALSE(of.made[0].has_gradient);
  CHECK_FALSE(shards.pieces()[first].target->has_gradient);
}

TEST_CASE(
    "where gradients are freed, what was computed goes when it is read, and sums have memory of their own") {
  stage_parameters_of_replica of;
  parameter_shards shards(of.named, by_use, {.index = 0, .count = 2, .frees_gradients = true});
  auto& whole = of.made[0];
  for (auto& each : of.made) each.detach_gradient();
  whole.attach_gradient(tensor::full({3 * block + 1}, 2));
  whole.has_gradient = true;
  shards.take_gradients();
  auto [first, end] = shards.pieces_of(whole);
  REQUIRE(end == first + 2);
  for (auto piece = first; piece < end; ++piece) {
    CHECK(shards.sent()[piece].target->gradient().values<float>()[0] == 2);
    CHECK_FALSE(shards.pieces()[piece].target->gradient().defined());
  }
  CHECK_FALSE(of.made[1].gradient().defined());  // which no pass has reached
  shards.free_gradient(whole);
  CHECK_FALSE(whole.gradient().defined());
  CHECK_FALSE(shards.sent()[first].target->gradient().defined());
  shards.take_gradients();
  CHECK_FALSE(whole.gradient().defined());  // not again in this step
  shards.pieces()[first].target->attached_gradient();
  shards.free_gradients();
  for (const auto& each : of.made) CHECK_FALSE(each.gradient().defined());
  CHECK_FALSE(shards.pieces()[first].target->gradient().defined());
  whole.attached_gradient().fill_zero();
  shards.take_gradients();
  CHECK(shards.sent()[first].target->gradient().defined());  // in the next step
}
