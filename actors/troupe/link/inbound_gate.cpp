#include "troupe/link/inbound_gate.hpp"

#include <caf/actor_cast.hpp>
#include <caf/message_id.hpp>
#include <string>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::actors::link {

void inbound_gate::bind(const actor::actor_name& name, caf::actor receiver) {
  std::lock_guard lock(mutex_);
  auto counters = actor::counters_of(receiver);
  receivers_[{name.role, name.number}] = {name.incarnation, std::move(receiver), std::move(counters)};
  deliver_held();
}

void inbound_gate::deliver(int from_rank, std::uint64_t generation, std::span<const std::byte> body) {
  std::lock_guard lock(mutex_);
  if (generation < generation_) {
    ++counters_.old_generation;
    return;
  }
  if (generation > generation_ && held_.size() == max_held)
    throw wire::decode_error("more than " + std::to_string(max_held) +
                             " messages arrived for a generation that has not begun on this process");
  arrived_message arrived{from_rank, decode_message(body), body.size()};
  if (generation > generation_ || !try_deliver(arrived)) hold(generation, std::move(arrived));
}

void inbound_gate::hold(std::uint64_t generation, arrived_message arrived) {
  if (held_.size() == max_held)
    throw wire::decode_error("more than " + std::to_string(max_held) + " messages arrived for " +
                             to_string(arrived.message.head.to) + ", which has not begun on this process");
  held_.emplace(generation, std::move(arrived));
}

void inbound_gate::open(std::uint64_t generation, std::shared_ptr<process_links> links) {
  std::lock_guard lock(mutex_);
  generation_ = generation;
  links_ = std::move(links);
  auto first = held_.lower_bound(generation);
  counters_.old_generation += static_cast<std::uint64_t>(std::distance(held_.begin(), first));
  held_.erase(held_.begin(), first);
  deliver_held();
}

/// Those of this generation whose receiver has its name by now, in the order in which they arrived.
void inbound_gate::deliver_held() {
  auto [first, last] = held_.equal_range(generation_);
  for (auto held = first; held != last;)
    held = try_deliver(held->second) ? held_.erase(held) : std::next(held);
}

/// False: it is for a newer incarnation than the one that is here.
bool inbound_gate::try_deliver(const arrived_message& arrived) {
  const auto& [head, content] = arrived.message;
  auto frame_bytes = arrived.frame_bytes;
  if (!links_ || !links_->reaches(arrived.from_rank)) {
    ++counters_.unknown_sender;
    return true;
  }
  if (head.kind == message_kind::reply) {
    if (!links_->to(arrived.from_rank)->on_reply(head.request, content, frame_bytes))
      ++counters_.late_replies;
    return true;
  }
  auto found = receivers_.find({head.to.role, head.to.number});
  if (found == receivers_.end()) {
    ++counters_.unknown_actor;
    refuse(arrived, "is not in the process that was asked");
    return true;
  }
  const auto& [incarnation, receiver, counters] = found->second;
  if (head.to.incarnation > incarnation) return false;
  if (head.to.incarnation < incarnation) {
    ++counters_.old_incarnation;
    refuse(arrived, "has been replaced by incarnation " + std::to_string(incarnation));
    return true;
  }
  auto requester = head.kind == message_kind::request
                       ? caf::actor_cast<caf::strong_actor_ptr>(links_->to(arrived.from_rank)->answers())
                       : caf::strong_actor_ptr();
  if (counters) counters->frame_received(frame_bytes);
  receiver->enqueue(requester, caf::make_message_id(head.request), content, nullptr);
  return true;
}

void inbound_gate::refuse(const arrived_message& arrived, const std::string& why) {
  const auto& head = arrived.message.head;
  if (head.kind == message_kind::request)
    links_->to(arrived.from_rank)
        ->reply(head.request, caf::make_message(actor::unavailable(to_string(head.to) + " " + why)));
}

gate_statistics inbound_gate::statistics() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

void inbound_gate::close() {
  std::lock_guard lock(mutex_);
  receivers_.clear();
  links_.reset();
}

}  // namespace troupe::actors::link
