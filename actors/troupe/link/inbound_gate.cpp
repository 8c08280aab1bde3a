#include "troupe/link/inbound_gate.hpp"

#include <caf/send.hpp>
#include <string>
#include <utility>

#include "troupe/wire/codec.hpp"

namespace troupe {

void inbound_gate::bind(const actor_name& name, caf::actor receiver) {
  std::lock_guard lock(mutex_);
  receivers_[name] = std::move(receiver);
}

void inbound_gate::deliver(std::uint64_t generation, std::span<const std::byte> body) {
  std::lock_guard lock(mutex_);
  if (generation < generation_)
    ++num_stale_;
  else if (generation > generation_ && held_.size() == max_held)
    throw decode_error("more than " + std::to_string(max_held) +
                       " messages arrived for a generation that has not begun on this node");
  else if (generation > generation_)
    held_.emplace(generation, decode_message(body));
  else
    send_on(decode_message(body));
}

void inbound_gate::open(std::uint64_t generation) {
  std::lock_guard lock(mutex_);
  generation_ = generation;
  auto first_newer = held_.upper_bound(generation);
  for (auto frame = held_.begin(); frame != first_newer; ++frame) {
    if (frame->first == generation)
      send_on(std::move(frame->second));
    else
      ++num_stale_;
  }
  held_.erase(held_.begin(), first_newer);
}

std::uint64_t inbound_gate::num_stale() const {
  std::lock_guard lock(mutex_);
  return num_stale_;
}

void inbound_gate::close() {
  std::lock_guard lock(mutex_);
  receivers_.clear();
}

void inbound_gate::send_on(addressed_message message) {
  auto found = receivers_.find(message.to);
  if (found != receivers_.end()) caf::anon_send(found->second, std::move(message.content));
}

}  // namespace troupe
