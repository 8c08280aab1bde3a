// The exchange of one stage's gradients between its replicas, without plan and interpreter.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <utility>

#include "troupe/execution/replicas/direct_exchange.hpp"
#include "troupe/execution/replicas/sum_buffers.hpp"
#include "troupe/ops/convert.hpp"

using namespace troupe;
using namespace troupe::execution;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

struct member {
  inbox arrived = {};
  std::optional<direct_exchange> exchange = {};
  std::vector<std::vector<float>> sums;  ///< by bucket
};

/// Tensors wait in `sent` until they are delivered, in any order.
struct exchanging {
  std::deque<member> members;
  std::vector<std::pair<transport::tensor_tag, tensor>> sent = {};

  exchanging(int num_replicas, int num_buckets) {
    for (int i = 0; i < num_replicas; ++i) {
      auto& added = members.emplace_back();
      added.exchange.emplace(
          replica_messages(i, num_replicas, {.generation = 1, .stage = 3}, added.arrived, sender()),
          num_buckets, [](int, std::int64_t count, dtype type) { return tensor::empty({count}, type); });
      added.sums.resize(static_cast<std::size_t>(num_buckets));
    }
  }
  replica_messages::sender sender() {
    return [this](const transport::tensor_tag& to, tensor value) { sent.emplace_back(to, std::move(value)); };
  }
  void deliver(std::size_t which) {
    auto [tag, value] = std::move(sent[which]);
    sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(which));
    auto& receiver = members.at(tag.replica);
    receiver.arrived.put(tag, std::move(value));
    go_on(receiver);
  }
  /// Without going on.
  void deliver_all() {
    for (auto& [tag, value] : std::exchange(sent, {})) members.at(tag.replica).arrived.put(tag, value);
  }
  void go_on(member& one) {
    if (!one.exchange->can_go_on()) return;
    one.exchange->go_on([&one](int bucket, const std::vector<tensor>& parts) {
      auto& sums = one.sums.at(static_cast<std::size_t>(bucket));
      CHECK(sums.empty());
      for (const auto& part : parts) {
        if (part.dtype() == dtype::i32) {
          for (auto each : part.values<std::int32_t>()) sums.push_back(static_cast<float>(each));
          continue;
        }
        auto widened = cast(part, dtype::f32);
        for (float each : widened.values<float>()) sums.push_back(each);
      }
    });
  }
};

/// Of all lengths: another order of their sum has other bits.
std::vector<float> drawn_numbers(std::int64_t count, std::mt19937& random) {
  std::vector<float> result(static_cast<std::size_t>(count));
  for (auto& each : result) each = std::uniform_real_distribution<float>(-1, 1)(random);
  return result;
}

}  // namespace

TEST_CASE("the sums of a bucket that one replica owns come to that replica alone, with the same bits") {
  constexpr int num_replicas = 3, num_buckets = 4;
  std::mt19937 random(1);
  for (int draw = 0; draw < 50; ++draw) {
    exchanging plain(num_replicas, num_buckets), owned(num_replicas, num_buckets);
    auto owner_of = [](int bucket) {
      return bucket == 3 ? std::nullopt : std::optional(bucket * 2 % num_replicas);
    };
    for (int i = 0; i < num_replicas; ++i) {
      auto& one = owned.members[static_cast<std::size_t>(i)];
      one.exchange.emplace(
          replica_messages(i, num_replicas, {.generation = 1, .stage = 3}, one.arrived, owned.sender()),
          num_buckets, [](int, std::int64_t count, dtype type) { return tensor::empty({count}, type); },
          direct_exchange::ownership{owner_of, nullptr});
    }
    for (int i = 0; i < num_replicas; ++i)
      for (int bucket = 0; bucket < num_buckets; ++bucket) {
        auto gradients = drawn_numbers(1 + bucket * 7, random);
        for (auto* each : {&plain, &owned})
          each->members[static_cast<std::size_t>(i)].exchange->give(
              bucket, tensor::from(gradients, {static_cast<std::int64_t>(gradients.size())}));
      }
    for (auto* each : {&plain, &owned})
      while (!each->sent.empty())
        each->deliver(std::uniform_int_distribution<std::size_t>(0, each->sent.size() - 1)(random));
    for (int i = 0; i < num_replicas; ++i) {
      const auto& one = owned.members[static_cast<std::size_t>(i)];
      CHECK(one.exchange->is_done());
      CHECK(one.arrived.num_held() == 0);
      for (int bucket = 0; bucket < num_buckets; ++bucket) {
        auto at = static_cast<std::size_t>(bucket);
        bool gets_it = owner_of(bucket).value_or(i) == i;
        CHECK(one.sums[at] ==
              (gets_it ? plain.members[static_cast<std::size_t>(i)].sums[at] : std::vector<float>()));
      }
    }
  }
}

TEST_CASE("replicas are told when the owner of a bucket has read what they gave, before the sums are taken") {
  exchanging all(2, 2);
  std::vector<int> read[2];
  for (int i = 0; i < 2; ++i) {
    auto& one = all.members[static_cast<std::size_t>(i)];
    one.exchange.emplace(
        replica_messages(i, 2, {.generation = 1, .stage = 3}, one.arrived, all.sender()), 2,
        [](int, std::int64_t count, dtype type) { return tensor::empty({count}, type); },
        direct_exchange::ownership{[](int bucket) { return std::optional(bucket); },
                                   [&known = read[i]](int bucket) { known.push_back(bucket); }});
  }
  auto& owner = all.members[0];
  auto& other = all.members[1];
  other.exchange->give(0, tensor::full({3}, 1));
  owner.exchange->give(0, tensor::full({3}, 2));
  all.deliver_all();
  other.exchange->add_up();
  CHECK(read[1].empty());
  owner.exchange->add_up();
  CHECK(read[0] == std::vector{0});
  CHECK(owner.sums[0].empty());
  while (!all.sent.empty()) all.deliver(0);  // and go on
  CHECK(owner.sums[0] == std::vector<float>{3, 3, 3});
  CHECK(read[0] == std::vector{0});
  CHECK(read[1] == std::vector{0});
  CHECK_FALSE(other.exchange->is_done());  // bucket 1 is to come
  other.exchange->give(1, tensor::full({1}, 4));
  owner.exchange->give(1, tensor::full({1}, 5));
  all.deliver_all();
  other.exchange->add_up();
  CHECK(read[1] == std::vector{0, 1});
  owner.exchange->add_up();
  CHECK(read[0] == std::vector{0});
  all.deliver_all();
  owner.exchange->add_up();
  CHECK(read[0] == std::vector{0, 1});
  CHECK(owner.exchange->is_done());
  CHECK(owner.sums[1].empty());
}

TEST_CASE("when a bucket counts as read, no exchange holds its elements any more") {
  exchanging all(2, 1);
  std::weak_ptr<std::vector<float>> memory[2];
  int num_read = 0;
  for (int i = 0; i < 2; ++i) {
    auto& one = all.members[static_cast<std::size_t>(i)];
    one.exchange.emplace(
        replica_messages(i, 2, {.generation = 1, .stage = 3}, one.arrived, all.sender()), 1,
        [](int, std::int64_t count, dtype type) { return tensor::empty({count}, type); },
        direct_exchange::ownership{[](int) { return std::optional(0); },
                                   [&memory, &num_read, i](int) {
                                     CHECK(memory[i].expired());
                                     ++num_read;
                                   }});
    auto elements = std::make_shared<std::vector<float>>(4, 1.0F);
    memory[i] = elements;
    auto* first = reinterpret_cast<std::byte*>(elements->data());
    one.exchange->give(0, tensor::wrap(std::move(elements), first, {4}, dtype::f32));
  }
  while (!all.sent.empty()) all.deliver(0);
  CHECK(num_read == 2);
  CHECK(all.members[0].sums[0] == std::vector<float>(4, 2));
}

TEST_CASE("buckets have the sums of the fixed tree in whatever order they are given and arrive") {
  auto seed = GENERATE(1U, 2U, 3U, 4U, 5U);
  CAPTURE(seed);
  std::mt19937 random(seed);
  std::vector<std::int64_t> sizes{1, 5, 64, 3};
  exchanging all(4, static_cast<int>(sizes.size()));
  std::vector<std::vector<float>> of[4];  // [replica][bucket]
  std::vector<std::pair<int, int>> to_give;
  for (int replica = 0; replica < 4; ++replica)
    for (int bucket = 0; bucket < 4; ++bucket) {
      of[replica].push_back(drawn_numbers(sizes[static_cast<std::size_t>(bucket)], random));
      to_give.emplace_back(replica, bucket);
    }
  std::ranges::shuffle(to_give, random);
  while (!to_give.empty() || !all.sent.empty()) {
    if (all.sent.empty() || (!to_give.empty() && random() % 2 == 0)) {
      auto [replica, bucket] = to_give.back();
      to_give.pop_back();
      auto& one = all.members[static_cast<std::size_t>(replica)];
      CHECK_FALSE(one.exchange->is_done());
      auto at = static_cast<std::size_t>(bucket);
      one.exchange->give(bucket, tensor::from(of[replica][at], {sizes[at]}));
      all.go_on(one);  // what the others sent may be there already
    } else {
      all.deliver(random() % all.sent.size());
    }
  }
  for (const auto& one : all.members) {
    CHECK(one.exchange->is_done());
    CHECK(one.arrived.num_held() == 0);
    for (std::size_t bucket = 0; bucket < sizes.size(); ++bucket) {
      std::vector<float> expected;
      for (std::size_t i = 0; i < of[0][bucket].size(); ++i)
        expected.push_back((of[0][bucket][i] + of[1][bucket][i]) + (of[2][bucket][i] + of[3][bucket][i]));
      CHECK(one.sums[bucket] == expected);
    }
  }
}

TEST_CASE("a bucket is summed and taken while others are not given") {
  exchanging all(2, 2);
  for (auto& one : all.members) one.exchange->give(1, tensor::full({4}, 1));
  while (!all.sent.empty()) all.deliver(0);
  for (auto& one : all.members) {
    CHECK(one.sums[1] == std::vector<float>(4, 2));
    CHECK_FALSE(one.exchange->is_done());
    CHECK(one.exchange->not_given() == std::vector<int>{0});
  }
}

TEST_CASE("a bucket that is given again is not sent again") {
  exchanging all(2, 1);
  all.members[0].exchange->give(0, tensor::full({4}, 1));
  auto num_sent = all.sent.size();
  all.members[0].exchange->give(0, tensor::full({4}, 5));
  CHECK(num_sent == 2);
  CHECK(all.sent.size() == num_sent);
}

TEST_CASE("replicas that give different numbers of elements are refused with the numbers") {
  exchanging all(2, 1);
  all.members[0].exchange->give(0, tensor::zeros({8}));
  all.members[1].exchange->give(0, tensor::zeros({6}));
  CHECK_THROWS_MATCHES(
      [&] {
        while (!all.sent.empty()) all.deliver(0);
      }(),
      std::logic_error, MessageMatches(ContainsSubstring("3 elements") && ContainsSubstring("has 4")));
}

TEST_CASE("gradients in 16 bits travel so, are added up in f32, and their sums are rounded once") {
  for (auto type : {dtype::bf16, dtype::f16}) {
    CAPTURE(to_string(type));
    // Half of the last bit of 1: lost where a node of the tree is rounded, and twice it is not.
    auto half_bit = type == dtype::bf16 ? 0x1p-8F : 0x1p-11F;
    const float given[] = {1, half_bit, half_bit, 0};
    exchanging all(4, 1);
    for (std::size_t i = 0; i < 4; ++i)
      all.members[i].exchange->give(0, cast(tensor::full({6}, given[i]), type));
    while (!all.sent.empty()) {
      CHECK(all.sent.front().second.dtype() == type);
      all.deliver(0);
    }
    for (const auto& one : all.members) {
      CHECK(one.exchange->is_done());
      CHECK(one.sums[0] == std::vector<float>(6, 1 + 2 * half_bit));
    }
  }
}

TEST_CASE("replicas that give different dtypes, or long integers, are refused with both") {
  exchanging all(2, 1);
  all.members[0].exchange->give(0, tensor::zeros({8}));
  all.members[1].exchange->give(0, tensor::zeros({8}, dtype::bf16));
  CHECK_THROWS_MATCHES(
      [&] {
        while (!all.sent.empty()) all.deliver(0);
      }(),
      std::logic_error, MessageMatches(ContainsSubstring("bf16") && ContainsSubstring("f32")));
  exchanging other(2, 1);
  CHECK_THROWS_MATCHES(other.members[0].exchange->give(0, tensor::zeros({8}, dtype::i64)), std::logic_error,
                       MessageMatches(ContainsSubstring("f32, bf16, f16 or i32")));
}

TEST_CASE("messages of any length go to all replicas, which take them in the order of replicas") {
  exchanging all(3, 1);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<std::int32_t> words(i + 1, static_cast<std::int32_t>(i));
    all.members[i].exchange->give(0, tensor::from(words, {static_cast<std::int64_t>(i + 1)}));
  }
  CHECK(all.sent.size() == 9);
  while (!all.sent.empty()) all.deliver(all.sent.size() - 1);
  for (const auto& one : all.members) {
    CHECK(one.exchange->is_done());
    CHECK(one.arrived.num_held() == 0);
    CHECK(one.sums[0] == std::vector<float>{0, 1, 1, 2, 2, 2});
  }
}

namespace {

/// A replica that gives the same memory in each step, as gradients are, and adds up in the same memory.
struct member_in_place {
  int replica = 0;
  std::uint64_t step = 0;
  tensor gradients = tensor::empty({num_elements});
  sum_buffers buffers{[](shape extents, dtype type) { return tensor::empty(std::move(extents), type); }};
  inbox arrived = {};
  std::optional<direct_exchange> exchange = {};
  std::vector<float> sums = std::vector<float>(num_elements);

  static constexpr int num_buckets = 3, num_replicas = 3;
  static constexpr std::int64_t num_elements = 600, per_bucket = num_elements / num_buckets;
  static float gradient(int replica, std::uint64_t step, std::int64_t element) {
    return static_cast<float>(100 * (replica + 1) + static_cast<int>(step) * 7 + element % 50);
  }

  void begin(const replica_messages::sender& send) {
    exchange.emplace(
        replica_messages(replica, num_replicas, {.generation = 1, .step = step}, arrived, send), num_buckets,
        [this](int bucket, std::int64_t count, dtype type) { return buffers.of(0, bucket, count, type); });
    auto values = gradients.values<float>();
    for (std::int64_t i = 0; i < num_elements; ++i)
      values[static_cast<std::size_t>(i)] = gradient(replica, step, i);
    for (int bucket = 0; bucket < num_buckets; ++bucket)
      exchange->give(bucket, gradients.rows(bucket * per_bucket, per_bucket));
  }
  void take(int bucket, const std::vector<tensor>& parts) {
    auto at = sums.begin() + bucket * per_bucket;
    for (const auto& part : parts) at = std::ranges::copy(part.values<float>(), at).out;
  }
  bool has_right_sums() const {
    for (std::int64_t i = 0; i < num_elements; ++i) {
      float expected = 0;
      for (int from = 0; from < num_replicas; ++from) expected += gradient(from, step, i);
      if (sums[static_cast<std::size_t>(i)] != expected) return false;
    }
    return true;
  }
};

}  // namespace

TEST_CASE("gradients and sums may stay where they are: who gives the next ones has read the last ones") {
  std::mt19937 draw(GENERATE(range(1U, 40U)));
  std::deque<member_in_place> members(member_in_place::num_replicas);
  std::vector<std::pair<transport::tensor_tag, tensor>> sent;
  auto send = [&](const transport::tensor_tag& to, tensor value) { sent.emplace_back(to, std::move(value)); };
  for (int i = 0; i < member_in_place::num_replicas; ++i) {
    members[static_cast<std::size_t>(i)].replica = i;
    members[static_cast<std::size_t>(i)].begin(send);
  }
  constexpr std::uint64_t num_steps = 6;
  std::size_t num_done = 0;
  while (num_done < members.size()) {
    REQUIRE_FALSE(sent.empty());
    auto which = std::uniform_int_distribution<std::size_t>(0, sent.size() - 1)(draw);
    auto [tag, value] = std::move(sent[which]);
    sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(which));
    auto& receiver = members.at(tag.replica);
    receiver.arrived.put(tag, std::move(value));
    receiver.exchange->go_on(
        [&](int bucket, const std::vector<tensor>& parts) { receiver.take(bucket, parts); });
    if (!receiver.exchange->is_done()) continue;
    REQUIRE(receiver.has_right_sums());
    if (++receiver.step == num_steps)
      ++num_done;
    else
      receiver.begin(send);
  }
}

TEST_CASE("a bucket's sums have the same memory in each step, in blocks of several buckets") {
  int num_blocks = 0;
  sum_buffers buffers([&](shape extents, dtype type) {
    ++num_blocks;
    return tensor::empty(std::move(extents), type);
  });
  auto first = buffers.of(0, 0, 1001, dtype::bf16);
  auto second = buffers.of(0, 1, 500, dtype::f32);
  auto other_stage = buffers.of(1, 0, 500, dtype::f32);
  CHECK(num_blocks == 1);
  CHECK(first.dtype() == dtype::bf16);
  CHECK(first.num_elements() == 1001);
  for (const auto* each : {&first, &second, &other_stage})
    CHECK(reinterpret_cast<std::uintptr_t>(each->bytes().data()) % 64 == 0);
  CHECK(std::as_const(second).bytes().data() >= std::as_const(first).bytes().data() + first.size_bytes());
  CHECK(std::as_const(other_stage).bytes().data() >=
        std::as_const(second).bytes().data() + second.size_bytes());
  CHECK(buffers.of(0, 1, 500, dtype::f32).bytes().data() == second.bytes().data());
  CHECK(buffers.of(0, 1, 600, dtype::bf16).bytes().data() == second.bytes().data());
  CHECK(buffers.of(0, 1, 600, dtype::f32).bytes().data() != second.bytes().data());
  CHECK(num_blocks == 1);
  CHECK(buffers.of(2, 0, 1 << 24, dtype::f32).num_elements() == 1 << 24);
  CHECK(num_blocks == 2);
  buffers.clear();
  std::ranges::fill(first.bytes(), std::byte{1});  // who has the tensor keeps its memory
}

TEST_CASE("slices that give unlike gradients in common are told so in their words") {
  inbox arrived;
  std::vector<std::pair<transport::tensor_tag, tensor>> sent;
  direct_exchange exchange(
      replica_messages(
          1, 2, {.generation = 1, .stage = 3, .axis = layout::mesh_axis::tp}, arrived,
          [&](const transport::tensor_tag& to, tensor value) { sent.emplace_back(to, std::move(value)); }),
      1, [](int, std::int64_t count, dtype type) { return tensor::empty({count}, type); });
  exchange.give(0, tensor::full({4}, 1));
  for (auto& [tag, value] : sent) {
    CHECK(tag.replica == 0);
    if (tag.slice == 1) arrived.put(tag, value);
  }
  auto of_other = sent.back().first;
  of_other.slice = 1;
  of_other.port = 0;
  arrived.put(of_other, tensor::full({3}, 1));
  CHECK_THROWS_MATCHES(exchange.add_up(), std::logic_error,
                       MessageMatches(ContainsSubstring("[stage_program::bucket] expected equally many of "
                                                        "one dtype in all slices") &&
                                      ContainsSubstring("of slice 0")));
}
