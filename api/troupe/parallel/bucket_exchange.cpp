#include "troupe/parallel/bucket_exchange.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "troupe/parallel/communication_order.hpp"

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
  bucket_update(bucket_exchange& of, std::size_t bucket) : of_(of), bucket_(bucket) {}

 protected:
  void finish() override { of_.receive(bucket_); }

 private:
  bucket_exchange& of_;  // gone once nothing is pending
  std::size_t bucket_;
};

bucket_exchange::bucket_exchange(const std::vector<planned_bucket>& planned,
                                 const std::vector<reduced_bucket>& buckets, communicator& group,
                                 bucket_action on_sum)
    : group_(group), buckets_(buckets), on_sum_(std::move(on_sum)), pieces_of_(planned.size()) {
  for (std::size_t bucket = 0; bucket < planned.size(); ++bucket) {
    updates_.push_back(std::make_shared<bucket_update>(*this, bucket));
    for (const auto& each : planned[bucket].pieces) {
      std::int64_t num_elements = 0;
      for (const auto& part : planned[bucket].parts)
        num_elements += overlap(each.first, each.count, part.first, part.extents.num_elements());
      pieces_of_[bucket].push_back(pieces_.size());
      pieces_.push_back({bucket, each.first, each.count, num_elements, num_elements, {}, {}});
    }
  }
  num_missing_.resize(planned.size(), 0);
  order_.resize(pieces_.size());
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  num_received_ = pieces_.size();
  agreed_ = group_.allocate({static_cast<std::int64_t>(pieces_.size())}, dtype::i32);
}

bucket_exchange::~bucket_exchange() {
  try {
    receive_all();
  } catch (...) {  // a failure stays the group's, and is told to whoever uses that again
  }
}

void bucket_exchange::begin_step() {
  receive_all();
  if (is_planning_step()) propose_order();
  is_under_way_ = true;
  num_sent_ = num_received_ = 0;
  for (auto& each : pieces_) each.num_missing = each.num_elements;
  for (std::size_t i = 0; i < num_missing_.size(); ++i) num_missing_[i] = pieces_of_[i].size();
}

void bucket_exchange::offer(std::size_t bucket, std::int64_t first, std::int64_t count) {
  if (!is_under_way_) begin_step();
  for (auto index : pieces_of_[bucket]) {
    auto& each = pieces_[index];
    auto added = overlap(each.first, each.count, first, count);
    each.num_missing -= added;
    if (added > 0 && each.num_missing == 0) each.ready = clock::now();
  }
  send_ready();
}

void bucket_exchange::send_ready() {
  for (; num_sent_ < order_.size(); ++num_sent_) {
    auto& next = pieces_[order_[num_sent_]];
    if (next.num_missing > 0) return;
    next.summed = group_.all_reduce(buckets_[next.bucket].sum().rows(next.first, next.count));
  }
}

void bucket_exchange::end_step() {
  if (!is_under_way_) begin_step();
  is_under_way_ = false;
  is_order_sent_ = is_planning_step();
  if (is_order_sent_) agreement_ = group_.broadcast(agreed_, 0);
  ++num_steps_;
  for (std::size_t i = 0; i < updates_.size(); ++i) updates_[i]->set_pending(num_missing_[i] > 0);
}

void bucket_exchange::follow(const piece_action& what) {
  if (following_) receive_all();
  if (num_received_ < pieces_.size()) following_ = what;
  auto num_left = num_missing_;
  for (std::size_t i = 0; i < num_received_; ++i) ++num_left[pieces_[order_[i]].bucket];
  for (std::size_t i = 0, end = num_received_; i < end; ++i) {
    const auto& each = pieces_[order_[i]];
    what({each.bucket, each.first, each.count, --num_left[each.bucket] == 0});
  }
}

void bucket_exchange::receive(std::size_t bucket) {
  while (num_missing_[bucket] > 0) receive_next();
}

void bucket_exchange::receive_all() {
  if (is_under_way_) return;
  while (num_received_ < pieces_.size()) receive_next();
  adopt_order();
}

void bucket_exchange::receive_next() {
  auto& next = pieces_[order_[num_received_]];
  try {
    next.summed.wait();
  } catch (...) {
    give_up();
    throw;
  }
  ++num_received_;
  --num_missing_[next.bucket];
  on_received(next);
}

void bucket_exchange::on_received(const piece& which) {
  auto is_last_of_all = num_received_ == pieces_.size();
  auto following = is_last_of_all ? std::exchange(following_, nullptr) : following_;
  auto is_last = num_missing_[which.bucket] == 0;
  if (is_last) {
    updates_[which.bucket]->set_pending(false);
    on_sum_(which.bucket);
  }
  if (following) following({which.bucket, which.first, which.count, is_last});
}

void bucket_exchange::give_up() {
  for (const auto& each : updates_) each->set_pending(false);
  std::ranges::fill(num_missing_, 0U);
  num_received_ = pieces_.size();
  following_ = nullptr;
  is_order_sent_ = false;
}

/// Soon after the first steps, which are slower than others, and then now and then.
bool bucket_exchange::is_planning_step() const {
  if (group_.size() == 1 || pieces_.size() < 2 || num_steps_ < 2) return false;
  return std::has_single_bit(num_steps_) || num_steps_ % 64 == 0;
}

/// From the times of the step before; it counts from the step after this one, when all have heard of it.
void bucket_exchange::propose_order() {
  if (group_.rank() != 0) return;
  auto first = std::ranges::min(pieces_, {}, &piece::ready).ready;
  std::vector<timed_piece> measured;
  for (const auto& each : pieces_)
    measured.push_back({std::chrono::duration<double>(each.ready - first).count(),
                        std::chrono::duration<double>(each.summed.time_taken()).count(),
                        -static_cast<int>(each.bucket)});
  auto order = communication_order(measured);
  agreed_.copy_from(tensor::from(order, agreed_.shape()).to(agreed_.device()));
}

/// Nobody leaves while it is on its way: that would be a loss to the others.
void bucket_exchange::adopt_order() {
  if (!std::exchange(is_order_sent_, false)) return;
  agreement_.wait();
  auto order = agreed_.to(device());
  for (std::size_t i = 0; i < order_.size(); ++i)
    order_[i] = static_cast<std::size_t>(order.values<std::int32_t>()[i]);
}

}  // namespace troupe
