#include "troupe/transport/data_plane/outgoing_tensors.hpp"

#include <algorithm>

namespace troupe::transport {

bool outgoing_tensors::may_go(int to_rank, const tensor_tag& tag) const {
  if (delays()) return false;
  auto found = peers_.find(to_rank);
  return send_queue::may_go(tag, found == peers_.end() ? bytes_in_flight() : found->second.in_flight);
}

void outgoing_tensors::wait(int to_rank, outgoing_tensor&& value) {
  if (delays()) value.put_at = std::chrono::steady_clock::now();
  peers_[to_rank].waiting.put(std::move(value));
  ++num_waiting_;
}

std::optional<outgoing_tensors::tensor_to> outgoing_tensors::take() {
  if (!has_waiting()) return {};
  if (delays() || delayed_) return take_delayed();
  auto next = std::ranges::find_if(peers_, [](const auto& each) {
    const auto& [in_flight, waiting] = each.second;
    return !waiting.empty() && send_queue::may_go(waiting.front().tag, in_flight);
  });
  if (next == peers_.end()) return {};
  --num_waiting_;
  return tensor_to(next->first, next->second.waiting.take());
}

std::optional<outgoing_tensors::tensor_to> outgoing_tensors::take_delayed() {
  if (!delayed_) {
    auto next = first_in_order();
    if (next == peers_.end()) return {};
    delayed_.emplace(next->first, next->second.waiting.take());
    const auto& [tag, code, value, put_at] = delayed_->second;
    delayed_until_ = delay_->end_of(value.size_bytes(), put_at);
  }
  if (std::chrono::steady_clock::now() < delayed_until_) return {};
  --num_waiting_;
  return std::exchange(delayed_, std::nullopt);
}

/// The peer whose next tensor is needed first; the end: nothing waits.
std::map<int, outgoing_tensors::peer>::iterator outgoing_tensors::first_in_order() {
  auto first = peers_.end();
  for (auto each = peers_.begin(); each != peers_.end(); ++each) {
    const auto& waiting = each->second.waiting;
    if (waiting.empty()) continue;
    if (first == peers_.end() ||
        send_order_of(waiting.front().tag) < send_order_of(first->second.waiting.front().tag))
      first = each;
  }
  return first;
}

std::vector<outgoing_tensors::tensor_to> outgoing_tensors::drop() {
  std::vector<tensor_to> dropped;
  if (delayed_) dropped.push_back(*std::exchange(delayed_, std::nullopt));
  for (auto& [rank, to] : peers_)
    while (!to.waiting.empty()) dropped.emplace_back(rank, to.waiting.take());
  num_waiting_ = 0;
  return dropped;
}

}  // namespace troupe::transport
