#include "troupe/data_parallel/bucket_exchange.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "troupe/gradients/communication_order.hpp"

namespace troupe {
namespace {

std::int64_t overlap(std::int64_t first, std::int64_t count, std::int64_t other_first,
                     std::int64_t other_count) {
  auto begin = std::max(first, other_first), end = std::min(first + count, other_first + other_count);
  return std::max(std::int64_t{0}, end - begin);
}

}  // namespace

class bucket_exchange::bucket_update : public pending_update {
 public:
  bucket_update(bucket_exchange& exchange, std::size_t bucket) : exchange_(exchange), bucket_(bucket) {}

 protected:
  void finish() override { exchange_.receive(bucket_); }

 private:
  bucket_exchange& exchange_;  // not accessed once no update is pending
  std::size_t bucket_;
};

bucket_exchange::bucket_exchange(const std::vector<planned_bucket>& planned,
                                 const std::vector<reduced_bucket>& buckets, communicator& group,
                                 bucket_callback on_sum)
    : group_(group), buckets_(buckets), on_sum_(std::move(on_sum)), chunks_of_(planned.size()) {
  for (std::size_t bucket = 0; bucket < planned.size(); ++bucket) {
    updates_.push_back(std::make_shared<bucket_update>(*this, bucket));
    for (const auto& each : planned[bucket].chunks) {
      std::int64_t num_elements = 0;
      for (const auto& part : planned[bucket].parts)
        num_elements += overlap(each.first, each.count, part.first, part.extents.num_elements());
      chunks_of_[bucket].push_back(chunks_.size());
      chunks_.push_back({bucket, each.first, each.count, num_elements, num_elements, {}, {}});
    }
  }
  num_missing_.resize(planned.size(), 0);
  order_.resize(chunks_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  num_received_ = chunks_.size();
  next_order_ = group_.allocate({static_cast<std::int64_t>(chunks_.size())}, dtype::i32);
}

bucket_exchange::~bucket_exchange() {
  try {
    receive_all();
  } catch (...) {  // the group keeps the failure and throws it at its next use
  }
}

void bucket_exchange::begin_step() {
  receive_all();
  if (is_planning_step()) propose_order();
  is_step_active_ = true;
  num_sent_ = num_received_ = 0;
  for (auto& each : chunks_) each.num_missing = each.num_elements;
  for (std::size_t i = 0; i < num_missing_.size(); ++i) num_missing_[i] = chunks_of_[i].size();
}

void bucket_exchange::mark_ready(std::size_t bucket, std::int64_t first, std::int64_t count) {
  if (!is_step_active_) begin_step();
  for (auto index : chunks_of_[bucket]) {
    auto& each = chunks_[index];
    auto added = overlap(each.first, each.count, first, count);
    each.num_missing -= added;
    if (added > 0 && each.num_missing == 0) each.ready = clock::now();
  }
  send_ready();
}

void bucket_exchange::send_ready() {
  for (; num_sent_ < order_.size(); ++num_sent_) {
    auto& next = chunks_[order_[num_sent_]];
    if (next.num_missing > 0) return;
    next.summed = buckets_[next.bucket].all_reduce(next.first, next.count);
  }
}

void bucket_exchange::end_step() {
  if (!is_step_active_) begin_step();
  is_step_active_ = false;
  is_order_broadcast_ = is_planning_step();
  if (is_order_broadcast_) order_broadcast_ = group_.broadcast(next_order_, 0);
  ++num_steps_;
  for (std::size_t i = 0; i < updates_.size(); ++i) updates_[i]->set_pending(num_missing_[i] > 0);
}

void bucket_exchange::on_reduced(const chunk_callback& callback) {
  if (on_chunk_) receive_all();
  if (num_received_ < chunks_.size()) on_chunk_ = callback;
  auto num_left = num_missing_;
  for (std::size_t i = 0; i < num_received_; ++i) ++num_left[chunks_[order_[i]].bucket];
  for (std::size_t i = 0, end = num_received_; i < end; ++i) {
    const auto& each = chunks_[order_[i]];
    callback({each.bucket, each.first, each.count, --num_left[each.bucket] == 0});
  }
}

void bucket_exchange::receive(std::size_t bucket) {
  while (num_missing_[bucket] > 0) receive_next();
}

void bucket_exchange::receive_all() {
  if (is_step_active_) return;
  while (num_received_ < chunks_.size()) receive_next();
  adopt_order();
}

void bucket_exchange::receive_next() {
  auto& next = chunks_[order_[num_received_]];
  try {
    next.summed.wait();
  } catch (...) {
    abort_step();
    throw;
  }
  ++num_received_;
  --num_missing_[next.bucket];
  on_received(next);
}

void bucket_exchange::on_received(const chunk& received) {
  auto is_last_of_all = num_received_ == chunks_.size();
  auto on_chunk = is_last_of_all ? std::exchange(on_chunk_, nullptr) : on_chunk_;
  auto is_last = num_missing_[received.bucket] == 0;
  if (is_last) {
    updates_[received.bucket]->set_pending(false);
    on_sum_(received.bucket);
  }
  if (on_chunk) on_chunk({received.bucket, received.first, received.count, is_last});
}

void bucket_exchange::abort_step() {
  for (const auto& each : updates_) each->set_pending(false);
  std::ranges::fill(num_missing_, 0U);
  num_received_ = chunks_.size();
  on_chunk_ = nullptr;
  is_order_broadcast_ = false;
}

/// Plans after steps 2, 4, 8, ... and every 64 steps: the first steps are slower than later ones.
bool bucket_exchange::is_planning_step() const {
  if (group_.size() == 1 || chunks_.size() < 2 || num_steps_ < 2) return false;
  return std::has_single_bit(num_steps_) || num_steps_ % 64 == 0;
}

/// Computes the order from the measured times of the previous step. It applies from the step after this one,
/// when all members have received it.
void bucket_exchange::propose_order() {
  if (group_.rank() != 0) return;
  auto first = std::ranges::min(chunks_, {}, &chunk::ready).ready;
  std::vector<gradients::timed_chunk> measured;
  for (const auto& each : chunks_)
    measured.push_back({std::chrono::duration<double>(each.ready - first).count(),
                        std::chrono::duration<double>(each.summed.time_taken()).count(),
                        -static_cast<int>(each.bucket)});
  auto order = communication_order(measured);
  next_order_.copy_from(tensor::from(order, next_order_.shape()).to(next_order_.device()));
}

/// Waits for the broadcast: a member that left while it is in flight would be lost to the others.
void bucket_exchange::adopt_order() {
  if (!std::exchange(is_order_broadcast_, false)) return;
  order_broadcast_.wait();
  auto order = next_order_.to(device());
  for (std::size_t i = 0; i < order_.size(); ++i)
    order_[i] = static_cast<std::size_t>(order.values<std::int32_t>()[i]);
}

}  // namespace troupe
