#include "troupe/data_parallel/hooks/detail/compressed_reduction.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "troupe/gradients/replica_sum.hpp"
#include "troupe/ops/convert.hpp"
#include "troupe/ops/rearrange.hpp"
#include "troupe/ops/reduction.hpp"

namespace troupe::detail {
namespace {

tensor together(const std::vector<tensor>& lists) {
  return lists.size() == 1 ? lists.front() : concat(lists, 0);
}

}  // namespace

std::int64_t compressed_reduction::exchange::length() const {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
}

compressed_reduction::compressed_reduction(gradient_bucket& bucket, communicator& group,
                                           const std::vector<compressed_hook::segment>& segments)
    : bucket_(bucket), group_(group), segments_(segments) {
  for (const auto& each : segments_) num_rounds_ = std::max(num_rounds_, each.of_replica(0).num_rounds());
  mark_not_finite();
  begin_round();
}

compressed_reduction::~compressed_reduction() {
  for (const auto& segment : segments_)
    for (const auto& each : segment.compressors) each->end_step();
}

/// Where one gradient of a bucket is not finite the step may be skipped: what compressors hold back must not
/// be sent in it.
void compressed_reduction::mark_not_finite() {
  auto holds_back = [](const compressed_hook::segment& segment) {
    return !segment.of_replica(0).state().empty();
  };
  if (std::ranges::none_of(segments_, holds_back)) return;
  for (std::size_t leaf = 0; leaf < bucket_.leaves.size(); ++leaf) {
    if (all_finite({&bucket_.leaves[leaf], 1})) continue;
    for (const auto& segment : segments_)
      if (holds_back(segment))
        bucket_.leaves[leaf]
            .rows(segment.first, segment.count)
            .copy_from(tensor::full({segment.count}, std::numeric_limits<float>::quiet_NaN()));
  }
}

bool compressed_reduction::proceed() {
  for (auto& each : exchanges_) each.call.wait();
  for (const auto& each : exchanges_) receive(each);
  if (++round_ == num_rounds_) return false;
  begin_round();
  return true;
}

void compressed_reduction::begin_round() {
  exchanges_ = messages_by_type();
  for (auto& each : exchanges_) begin(each);
}

/// On a member without replicas those of a gradient of zeros, which are not sent: their dtypes and lengths.
std::vector<compressed_reduction::exchange> compressed_reduction::messages_by_type() {
  std::vector<exchange> result;
  std::vector<std::vector<std::vector<tensor>>>
      messages;  // [exchange] [own replica] [segment of the exchange]
  bool has_replicas = !bucket_.leaves.empty();
  auto num_leaves = std::max<std::size_t>(bucket_.leaves.size(), 1);
  for (std::size_t segment = 0; segment < segments_.size(); ++segment) {
    const auto& sent = segments_[segment];
    if (round_ >= sent.of_replica(0).num_rounds()) continue;
    for (std::size_t leaf = 0; leaf < num_leaves; ++leaf) {
      auto gradient =
          has_replicas ? bucket_.leaves[leaf].rows(sent.first, sent.count) : tensor::zeros({sent.count});
      auto message = sent.of_replica(leaf).message_of(part_of(sent), gradient);
      auto found = std::ranges::find(result, message.dtype(), &exchange::type);
      auto at = static_cast<std::size_t>(found - result.begin());
      if (found == result.end()) {
        result.emplace_back().type = message.dtype();
        messages.emplace_back(num_leaves);
      }
      if (leaf == 0) {
        result[at].segments.push_back(segment);
        result[at].lengths.push_back(message.num_elements());
      }
      messages[at][leaf].push_back(std::move(message));
    }
  }
  for (std::size_t i = 0; has_replicas && i < result.size(); ++i)
    for (const auto& of_replica : messages[i]) result[i].of_replicas.push_back(together(of_replica));
  return result;
}

void compressed_reduction::begin(exchange& begun) {
  begun.is_gathered() ? begin_gather(begun) : begin_sum(begun);
}

/// Where each member has one replica, 16 bits are sent in both phases; else f32 in the first.
void compressed_reduction::begin_sum(exchange& begun) {
  begun.received = tensor::empty({begun.length()}, begun.type);  // compressors keep their messages
  if (begun.of_replicas.size() == 1 && gradients::is_plain_all_reduce(*bucket_.replicas, group_)) {
    begun.call = group_.all_reduce(begun.of_replicas.front(), begun.received, reduce_op::sum);
    return;
  }
  auto of_replicas = begun.of_replicas;
  for (auto& each : of_replicas) each = cast(each, dtype::f32);
  begun.call = gradients::all_reduce_replicas(of_replicas, begun.received, *bucket_.replicas, group_);
}

void compressed_reduction::begin_gather(exchange& begun) {
  std::vector<std::int64_t> parts;
  for (int member = 0; member < group_.size(); ++member)
    parts.push_back(static_cast<std::int64_t>(bucket_.replicas->leaves_of(member).size()) * begun.length());
  auto own = begun.of_replicas.empty() ? tensor::empty({0}, begun.type) : together(begun.of_replicas);
  begun.received = tensor::empty({bucket_.replicas->num_leaves() * begun.length()}, begun.type);
  begun.call = group_.all_gather(own, begun.received, std::move(parts));
}

void compressed_reduction::receive(const exchange& ended) {
  std::int64_t first = 0;
  auto num_received = ended.is_gathered() ? bucket_.replicas->num_leaves() : 1;
  for (std::size_t i = 0; i < ended.segments.size(); ++i) {
    const auto& segment = segments_[ended.segments[i]];
    std::vector<tensor> received;
    for (int number = 0; number < num_received; ++number)
      received.push_back(ended.received.rows(number * ended.length() + first, ended.lengths[i]));
    first += ended.lengths[i];
    std::vector<tensor> sums;  // equal for all replicas
    for (const auto& each : segment.compressors) {
      if (!sums.empty() && each->num_rounds() == 1) break;
      auto found = each->sums_from(part_of(segment), received);
      if (sums.empty()) sums = std::move(found);
    }
    if (!sums.empty()) bucket_.sum.rows(segment.first, segment.count).copy_from(together(sums));
  }
}

}  // namespace troupe::detail
