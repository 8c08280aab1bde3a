#pragma once
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "troupe/execution/replicas/follower_exchange.hpp"
#include "troupe/execution/replicas/group_exchange.hpp"
#include "troupe/execution/replicas/sum_buffers.hpp"
#include "troupe/ops/convert.hpp"

namespace troupe::testing {

/// The replicas of a stage, all on one thread, which add up over the members of a group. Messages between
/// them arrive in any order; calls of the group end while the thread does something else.
class exchanging_replicas {
 public:
  /// [replica][bucket] what was taken.
  using taken_tensors = std::vector<std::vector<std::vector<tensor>>>;

  /// `member_of_replica` [replica]: index in `members`. What each takes of the random numbers, it takes in
  /// one order.
  exchanging_replicas(std::vector<std::shared_ptr<communicator>> members,
                      const std::vector<member_index>& member_of_replica, unsigned seed = 1)
      : random_(seed) {
    for (auto member : member_of_replica) {
      auto& added = replicas_.emplace_back();
      added.group.member_of_replica = member_of_replica;
      added.group.calls = members[static_cast<std::size_t>(member)];
    }
  }

  /// Begins an exchange in which nothing is given yet.
  void begin(int num_buckets) {
    ++step_;
    for (int i = 0; i < num_replicas(); ++i) begin(i, num_buckets);
  }
  execution::replica_exchange& exchange_of(int replica) { return *at(replica).exchange; }
  /// Gives a bucket and lets everything go on that can.
  void give(int replica, int bucket, const tensor& value) {
    exchange_of(replica).give(bucket, value);
    go_on();
  }
  /// One round. Returns whether all replicas have taken everything.
  bool go_on() {
    if (!sent_.empty()) {
      auto which = std::uniform_int_distribution<std::size_t>(0, sent_.size() - 1)(random_);
      auto [tag, value] = std::move(sent_[which]);
      sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(which));
      at(static_cast<int>(tag.replica)).arrived.put(tag, std::move(value));
    }
    bool all_done = true;
    for (auto& each : replicas_) {
      if (each.exchange->can_go_on())
        each.exchange->go_on([&each](int bucket, const std::vector<tensor>& sums) {
          auto& taken = each.taken.at(static_cast<std::size_t>(bucket));
          for (const auto& part : sums) taken.push_back(part.clone());
          if (each.on_taken) each.on_taken(bucket, taken);
        });
      all_done &= each.exchange->is_done();
    }
    return all_done;
  }
  taken_tensors finish() {
    while (!go_on()) std::this_thread::yield();
    taken_tensors all;
    for (auto& each : replicas_) all.push_back(each.taken);
    return all;
  }
  /// Called when a replica takes a bucket.
  void on_taken(int replica, std::function<void(int bucket, const std::vector<tensor>& sums)> callback) {
    at(replica).on_taken = std::move(callback);
  }
  const std::vector<std::string>& failures() const { return failures_; }
  int num_replicas() const { return static_cast<int>(replicas_.size()); }
  /// Numbers below `end`, in any order.
  std::vector<int> drawn_order(int end) {
    std::vector<int> order(static_cast<std::size_t>(end));
    for (int i = 0; i < end; ++i) order[static_cast<std::size_t>(i)] = i;
    std::ranges::shuffle(order, random_);
    return order;
  }

 private:
  struct replica {
    execution::inbox arrived = {};
    execution::replica_group group = {};
    execution::sum_buffers memory{
        [](shape extents, dtype type) { return tensor::empty(std::move(extents), type); }};
    std::unique_ptr<execution::replica_exchange> exchange = {};
    std::vector<std::vector<tensor>> taken = {};
    std::function<void(int, const std::vector<tensor>&)> on_taken = {};
  };

  replica& at(int number) { return replicas_.at(static_cast<std::size_t>(number)); }

  void begin(int number, int num_buckets) {
    auto& one = at(number);
    execution::replica_messages messages(
        number, num_replicas(), {.generation = 1, .step = step_, .stage = 3}, one.arrived,
        [this](const transport::tensor_tag& to, tensor value) { sent_.emplace_back(to, std::move(value)); });
    one.taken.assign(static_cast<std::size_t>(num_buckets), {});
    auto leader = one.group.replicas_with(number).front();
    if (leader != number) {
      one.exchange = std::make_unique<execution::follower_exchange>(std::move(messages), num_buckets, leader);
      return;
    }
    one.exchange = std::make_unique<execution::group_exchange>(
        std::move(messages), num_buckets, one.group,
        [&one](int bucket, std::int64_t count, dtype type) { return one.memory.of(0, bucket, count, type); },
        [this](const std::exception& cause) { failures_.emplace_back(cause.what()); });
  }

  std::mt19937 random_;
  std::deque<replica> replicas_;
  std::uint64_t step_ = 0;
  std::vector<std::pair<transport::tensor_tag, tensor>> sent_;
  std::vector<std::string> failures_;
};

/// Of all lengths, so that another order of their sum has other bits.
inline tensor drawn_gradients(std::int64_t count, std::mt19937& random) {
  auto result = tensor::empty({count});
  for (auto& each : result.values<float>()) each = std::uniform_real_distribution<float>(-1, 1)(random);
  return result;
}

inline std::vector<float> floats_of(const tensor& x) {
  auto widened = cast(x, dtype::f32);
  auto values = std::as_const(widened).values<float>();
  return {values.begin(), values.end()};
}

}  // namespace troupe::testing
