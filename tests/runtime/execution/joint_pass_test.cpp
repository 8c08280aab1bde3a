// What replicas add up within an action: sums in the fixed tree, and what is told where they do not meet
// alike.
#include "troupe/execution/joint_pass.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <deque>
#include <stdexcept>
#include <thread>

#include "support/unlike_sums.hpp"
#include "troupe/execution/inbox/arrivals.hpp"

using namespace troupe;
using namespace troupe::execution;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using enum action_kind;

namespace {

transport::tensor_tag tag_of(std::uint64_t step) { return {.generation = 1, .step = step, .stage = 2}; }

/// Replicas with an inbox each.
struct meeting {
  explicit meeting(std::size_t num_replicas)
      : incoming(num_replicas), inboxes(num_replicas), num_messages(num_replicas, 0) {}

  joint_pass pass(int replica, const action& op, std::uint64_t step = 4) {
    auto at = static_cast<std::size_t>(replica);
    return joint_pass(
        op, replica, static_cast<int>(inboxes.size()), tag_of(step), num_messages[at],
        [this](const transport::tensor_tag& to, tensor value) {
          incoming[to.replica].put(to, std::move(value));
        },
        [this, at](const transport::tensor_tag& wanted) {
          for (;;) {
            auto seen = incoming[at].num_put();
            incoming[at].move_to(inboxes[at]);
            if (auto value = inboxes[at].take(wanted)) return std::move(*value);
            incoming[at].wait_for_more(seen, std::chrono::seconds(60));
          }
        });
  }

  std::deque<arrivals> incoming;
  std::vector<inbox> inboxes;
  std::vector<std::uint32_t> num_messages;
};

}  // namespace

TEST_CASE("replicas that add up in a pass get the sums of the tree, one after the other, in any order") {
  const auto values = testing::unlike_sums();
  meeting replicas(values.size());
  std::vector<std::vector<float>> sums(values.size());
  std::vector<std::thread> threads;
  for (int replica = 0; replica < 4; ++replica)
    threads.emplace_back([&, replica] {
      for (const auto& op : {action{2, forward, 0}, action{2, backward, 0}}) {
        auto pass = replicas.pass(replica, op);
        for (std::int64_t count : {1, 5}) {
          auto own = tensor::full({count}, values[static_cast<std::size_t>(replica)]);
          pass.all_reduce(own);
          for (float each : own.values<float>()) sums[static_cast<std::size_t>(replica)].push_back(each);
        }
        pass.end();
      }
    });
  for (auto& each : threads) each.join();
  auto expected = (values[0] + values[1]) + (values[2] + values[3]);
  for (const auto& each : sums) CHECK(each == std::vector<float>(12, expected));
  CHECK(replicas.num_messages == std::vector<std::uint32_t>(4, 6));  // with the ends
}

TEST_CASE("replicas that come to different sums are told which") {
  struct meets {
    action op;
    std::int64_t count;  ///< 0: the end
  };
  auto told = [](const meets& first, const meets& second) {
    meeting replicas(2);
    auto early = tensor::full({second.count}, 1);
    // The other one's values are there before this one waits, so that nobody blocks.
    auto of_other = joint_pass(
        second.op, 1, 2, tag_of(4), replicas.num_messages[1],
        [&](const transport::tensor_tag& to, tensor value) { replicas.inboxes[0].put(to, std::move(value)); },
        [](const transport::tensor_tag&) -> tensor { throw program::action_interrupted(); });
    if (second.count == 0)
      of_other.end();
    else
      CHECK_THROWS_AS(of_other.all_reduce(early), program::action_interrupted);
    auto own = tensor::full({first.count}, 1);
    auto pass = replicas.pass(0, first.op);
    try {
      pass.all_reduce(own);
    } catch (const std::logic_error& problem) {
      return std::string(problem.what());
    }
    return std::string();
  };
  CHECK(told({{2, forward, 3}, 4}, {{2, forward, 3}, 4}).empty());
  CHECK_THAT(told({{2, forward, 3}, 4}, {{2, forward, 3}, 5}),
             ContainsSubstring("replica 1 has come to sum 0 of 2F3, of 5 values") &&
                 ContainsSubstring("replica 0, to sum 0 of 2F3, of 4 values"));
  CHECK_THAT(told({{2, forward, 3}, 4}, {{2, forward, 4}, 4}), ContainsSubstring("of 2F4, of 4 values"));
  CHECK_THAT(told({{2, input_gradient, 3}, 4}, {{2, forward, 3}, 4}), ContainsSubstring("of 2I3"));
  CHECK_THAT(told({{2, forward, 3}, 4}, {{2, forward, 3}, 0}),
             ContainsSubstring("replica 1 has come to the end of 2F3, after 0 sums"));
}

TEST_CASE("what is no f32 in a sum over replicas is refused") {
  meeting replicas(1);
  auto halves = tensor::zeros({3}, dtype::bf16);
  CHECK_THROWS_MATCHES(replicas.pass(0, {2, forward, 0}).all_reduce(halves), std::logic_error,
                       MessageMatches(ContainsSubstring("expected f32") && ContainsSubstring("bf16")));
}

TEST_CASE("what any thread puts wakes who waits for it, once in a mailbox, and goes to an inbox") {
  int num_told = 0;
  arrivals incoming([&num_told] { ++num_told; });
  inbox box;
  auto tag = tag_of(0);
  CHECK_FALSE(incoming.move_to(box));
  std::thread puts([&] { incoming.put(tag, tensor::full({1}, 5)); });
  while (incoming.num_put() == 0) incoming.wait_for_more(0, std::chrono::seconds(60));
  puts.join();
  CHECK(num_told == 1);
  CHECK(incoming.must_notify());
  CHECK_FALSE(incoming.must_notify());
  CHECK(incoming.num_held() == 1);
  CHECK(incoming.move_to(box));
  CHECK(incoming.num_held() == 0);
  CHECK_FALSE(incoming.move_to(box));
  CHECK(box.take(tag)->values<float>()[0] == 5);
  incoming.put(tag, tensor::zeros({1}));
  incoming.put(tag, tensor::zeros({1}));
  CHECK(incoming.must_notify());
  CHECK_THROWS_MATCHES(incoming.move_to(box), std::logic_error,
                       MessageMatches(ContainsSubstring("each tensor once")));
}
