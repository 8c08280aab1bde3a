#include "troupe/transport/data_plane/outgoing_tensors.hpp"

#include <algorithm>

namespace troupe::transport {

bool outgoing_tensors::may_go(int to_rank, const tensor_tag& tag) const {
  if (link_.exists()) return false;
  auto found = peers_.find(to_rank);
  return send_queue::may_go(tag, found == peers_.end() ? bytes_in_flight() : found->second.in_flight);
}

void outgoing_tensors::wait(int to_rank, outgoing_tensor&& value) {
  if (link_.exists()) value.put_at = emulated_link::clock::now();
  peers_[to_rank].waiting.put(std::move(value));
  ++num_waiting_;
}

std::optional<outgoing_tensors::tensor_to> outgoing_tensors::take() {
  if (!has_waiting()) return {};
  if (link_.exists() || link_.is_busy()) return take_over_link();
  auto next = std::ranges::find_if(peers_, [](const auto& each) {
    const auto& [in_flight, waiting] = each.second;
    return !waiting.empty() && send_queue::may_go(waiting.front().tag, in_flight);
  });
  if (next == peers_.end()) return {};
  --num_waiting_;
  return tensor_to(next->first, next->second.waiting.take());
}

std::optional<outgoing_tensors::tensor_to> outgoing_tensors::take_over_link() {
  for (;;) {
    if (auto over = link_.take()) {
      --num_waiting_;
      return std::move(*over);
    }
    if (link_.is_busy() || !link_.exists()) return {};
    auto next = first_in_order();
    if (next == peers_.end()) return {};
    link_.carry(next->first, next->second.waiting.take());
  }
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
  if (auto carried = link_.drop()) dropped.push_back(std::move(*carried));
  for (auto& [rank, to] : peers_)
    while (!to.waiting.empty()) dropped.emplace_back(rank, to.waiting.take());
  num_waiting_ = 0;
  return dropped;
}

}  // namespace troupe::transport
