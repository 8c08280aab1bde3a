// Gradients that replicas add up over a group: over threads of this process, whose reductions follow the
// fixed tree.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "runtime/execution/exchanging_replicas.hpp"
#include "support/unlike_sums.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using namespace troupe::execution;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

std::vector<std::shared_ptr<communicator>> local_members(int size) {
  std::vector<std::shared_ptr<communicator>> members;
  for (auto& each : collective::make_local_group(size)) members.push_back(std::move(each));
  return members;
}

}  // namespace

TEST_CASE("over a group, replicas alone in their processes have the sums of the fixed tree") {
  auto seed = GENERATE(range(1U, 9U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::vector<std::int64_t> sizes{1, 5, 4000, 3};
  auto num_buckets = static_cast<int>(sizes.size());
  exchanging_replicas all(local_members(4), {0, 1, 2, 3}, seed);
  for (int step = 0; step < 4; ++step) {
    all.begin(num_buckets);
    std::vector<std::vector<tensor>> given(4);  // [replica][bucket]
    std::vector<std::vector<int>> orders;
    for (int replica = 0; replica < 4; ++replica) {
      for (auto size : sizes)
        given[static_cast<std::size_t>(replica)].push_back(drawn_gradients(size, random));
      orders.push_back(all.drawn_order(num_buckets));
    }
    for (std::size_t turn = 0; turn < sizes.size(); ++turn)
      for (int replica : all.drawn_order(4)) {
        auto bucket = orders[static_cast<std::size_t>(replica)][turn];
        CHECK_FALSE(all.exchange_of(replica).is_done());
        all.give(replica, bucket, given[static_cast<std::size_t>(replica)][static_cast<std::size_t>(bucket)]);
      }
    auto taken = all.finish();
    for (const auto& of_replica : taken)
      for (std::size_t bucket = 0; bucket < sizes.size(); ++bucket) {
        std::vector<float> expected;
        for (std::size_t i = 0; i < static_cast<std::size_t>(sizes[bucket]); ++i) {
          auto of = [&](std::size_t replica) { return given[replica][bucket].values<float>()[i]; };
          expected.push_back((of(0) + of(1)) + (of(2) + of(3)));
        }
        REQUIRE(of_replica[bucket].size() == 1);
        CHECK(floats_of(of_replica[bucket].front()) == expected);
      }
  }
  CHECK(all.failures().empty());
}

TEST_CASE("after the first exchange, calls come in the order in which member 0 was given the buckets") {
  auto members = local_members(2);
  exchanging_replicas all(members, {0, 1});
  for (int step = 0; step < 3; ++step) {
    all.begin(3);
    for (int bucket : {2, 0, 1}) all.give(0, bucket, tensor::full({100 + bucket}, 1));
    for (int bucket : {0, 1, 2}) all.give(1, bucket, tensor::full({100 + bucket}, 1));
    all.finish();
  }
  auto calls = members[1]->recent_calls();
  std::vector<std::size_t> at;
  for (const char* count : {"102", "100", "101"}) at.push_back(calls.rfind(count));
  CAPTURE(calls);
  CHECK(at[0] < at[1]);
  CHECK(at[1] < at[2]);
}

TEST_CASE("the replicas of a process are added up there, in f32, and 16 bits are rounded at the end") {
  for (auto type : {dtype::bf16, dtype::f16}) {
    CAPTURE(to_string(type));
    // Half of the last bit of 1: lost where a sum is rounded, and twice it is not.
    auto half_bit = type == dtype::bf16 ? 0x1p-8F : 0x1p-11F;
    const float given[] = {1, half_bit, half_bit};
    exchanging_replicas all(local_members(2), {0, 0, 1});
    all.begin(1);
    for (int i = 0; i < 3; ++i) all.give(i, 0, cast(tensor::full({6}, given[i]), type));
    for (const auto& of_replica : all.finish()) {
      CHECK(of_replica[0].front().dtype() == type);
      CHECK(floats_of(of_replica[0].front()) == std::vector<float>(6, 1 + 2 * half_bit));
    }
  }
}

TEST_CASE("replicas that share processes unevenly have equal sums, in the order of processes") {
  auto numbers = unlike_sums();
  exchanging_replicas all(local_members(2), {1, 0, 1, 1});
  for (int step = 0; step < 3; ++step) {
    all.begin(1);
    for (int i : all.drawn_order(4)) all.give(i, 0, tensor::full({9}, numbers[static_cast<std::size_t>(i)]));
    for (const auto& of_replica : all.finish())
      CHECK(floats_of(of_replica[0].front()) ==
            std::vector<float>(9, numbers[1] + ((numbers[0] + numbers[2]) + numbers[3])));
  }
}

TEST_CASE("messages of any length go over a group to all replicas, in the order of replicas") {
  exchanging_replicas all(local_members(3), {2, 0, 2, 1});
  for (int step = 0; step < 3; ++step) {
    all.begin(2);
    for (int i : all.drawn_order(4)) {
      std::vector<std::int32_t> words(static_cast<std::size_t>(i + step + 1), 10 * i + step);
      all.give(i, 1, tensor::full({7}, 1));
      all.give(i, 0, tensor::from(words, {i + step + 1}));
    }
    for (const auto& of_replica : all.finish()) {
      REQUIRE(of_replica[0].size() == 4);
      for (int i = 0; i < 4; ++i) {
        auto message = std::as_const(of_replica[0][static_cast<std::size_t>(i)]).values<std::int32_t>();
        CHECK(std::vector(message.begin(), message.end()) ==
              std::vector<std::int32_t>(static_cast<std::size_t>(i + step + 1), 10 * i + step));
      }
      CHECK(floats_of(of_replica[1].front()) == std::vector<float>(7, 4));
    }
  }
}

TEST_CASE("a bucket may depend on the sums of another one") {
  exchanging_replicas all(local_members(2), {0, 1, 1});
  for (int step = 0; step < 4; ++step) {
    all.begin(3);
    for (int i = 0; i < 3; ++i)
      all.on_taken(i, [&all, i](int bucket, const std::vector<tensor>& sums) {
        if (bucket == 0) all.exchange_of(i).give(1, sums.front());
      });
    for (int i : all.drawn_order(3)) {
      all.give(i, 2, tensor::full({50}, 1));
      all.give(i, 0, tensor::full({8}, static_cast<float>(i + 1)));
    }
    for (const auto& of_replica : all.finish())
      CHECK(floats_of(of_replica[1].front()) == std::vector<float>(8, 18));
  }
}

TEST_CASE("replicas whose buckets differ are refused, in one process and in two") {
  exchanging_replicas same(local_members(2), {0, 0, 1});
  same.begin(1);
  same.give(1, 0, tensor::zeros({8}));
  CHECK_THROWS_MATCHES(
      [&] {
        same.give(0, 0, tensor::zeros({6}));
        for (int i = 0; i < 4; ++i) same.go_on();
      }(),
      std::logic_error, MessageMatches(ContainsSubstring("[8]") && ContainsSubstring("[6]")));

  exchanging_replicas others(local_members(2), {0, 1});
  others.begin(1);
  CHECK_THROWS_MATCHES(
      [&] {
        others.give(0, 0, tensor::zeros({8}));
        others.give(1, 0, tensor::zeros({6}));
        others.finish();
      }(),
      collective_error, MessageMatches(ContainsSubstring("8") && ContainsSubstring("6")));
  CHECK(others.failures().empty());
}

TEST_CASE("where a group has failed nothing goes on, and its member is told the cause once") {
  auto members = local_members(2);
  exchanging_replicas all(members, {0, 1});
  all.begin(2);
  all.give(0, 0, tensor::full({8}, 1));
  all.give(0, 1, tensor::full({8}, 1));
  members[1]->abort("the cable was cut");
  while (all.failures().empty()) all.go_on();
  CHECK_THAT(all.failures().front(), ContainsSubstring("the cable was cut"));
  for (int i = 0; i < 10; ++i) CHECK_FALSE(all.go_on());
  CHECK(all.failures().size() == 1);
  CHECK_FALSE(all.exchange_of(0).can_go_on());
}
