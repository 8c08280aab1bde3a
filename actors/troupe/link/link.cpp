#include "troupe/link/link.hpp"

#include <caf/actor_clock.hpp>
#include <caf/behavior.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/exit_reason.hpp>
#include <caf/mailbox_element.hpp>
#include <caf/sec.hpp>
#include <caf/send.hpp>
#include <stdexcept>
#include <utility>

#include "troupe/actor/actor_error.hpp"
#include "troupe/actor/counted_actor.hpp"
#include "troupe/link/forwarding_actor.hpp"
#include "troupe/messages/link.hpp"

namespace troupe::actors::link {
namespace {

/// Sends the requester its response.
void respond(const caf::strong_actor_ptr& requester, caf::message_id request, caf::message content) {
  if (requester) requester->enqueue(nullptr, request.response_id(), std::move(content), nullptr);
}

caf::error lost(const actor::actor_name& who, const std::string& cause) {
  return make_error(actor::actor_error::lost, to_string(who) + " cannot be reached any more: " + cause);
}

messages::request_failed failure_of(const caf::error& problem) {
  if (auto code = actor::code_of(problem))
    return {static_cast<std::uint8_t>(*code), true, actor::describe(problem)};
  bool has_ended = problem == caf::sec::request_receiver_down;
  auto code = has_ended ? actor::actor_error::failed : actor::actor_error::unavailable;
  auto text = has_ended ? "has ended before it replied" : "cannot reply: " + actor::describe(problem);
  return {static_cast<std::uint8_t>(code), false, text};
}

/// A response as it goes over the wire.
caf::message outgoing_reply(const caf::message& content) {
  if (content.empty()) return caf::make_message(messages::request_done{});
  if (content.match_elements<caf::error>())
    return caf::make_message(failure_of(content.get_as<caf::error>(0)));
  return content;
}

/// The reverse, with the name of the actor that replied.
caf::message incoming_reply(const caf::message& content, const actor::actor_name& from) {
  if (content.match_elements<messages::request_done>()) return {};
  if (!content.match_elements<messages::request_failed>()) return content;
  const auto& failed = content.get_as<messages::request_failed>(0);
  auto code = failed.code >= 1 && failed.code <= static_cast<std::uint8_t>(actor::actor_error::timed_out)
                  ? static_cast<actor::actor_error>(failed.code)
                  : actor::actor_error::failed;
  auto text = failed.is_of_actor ? failed.text : to_string(from) + " " + failed.text;
  return caf::make_message(make_error(code, text));
}

}  // namespace

std::shared_ptr<link> link::make(caf::actor_system& system, link_options options) {
  std::shared_ptr<link> made(new link(system, std::move(options)));
  made->answers_ = make_forwarding_actor(system, [of = std::weak_ptr(made)](caf::mailbox_element& message) {
    auto alive = of.lock();
    if (alive && message.mid.is_response())
      alive->reply(message.mid.request_id().integer_value(), message.move_content_to_message());
  });
  return made;
}

caf::actor link::proxy(actor::actor_role role, std::uint32_t number) {
  actor::actor_name name{role, number, options_.remote_incarnation};
  std::lock_guard lock(mutex_);
  if (auto found = proxies_.find(name); found != proxies_.end()) return found->second;
  auto made = make_forwarding_actor(system_, [of = shared_from_this(), name](caf::mailbox_element& message) {
    of->forward(name, message);
  });
  if (ended_by_)
    end_forwarding_actor(made, lost(name, *ended_by_));
  else
    proxies_[name] = made;  // end() takes it away again: it keeps this link
  return made;
}

void link::forward(const actor::actor_name& to, caf::mailbox_element& message) {
  if (message.mid.is_request()) return request(to, message);
  {
    std::lock_guard lock(mutex_);
    if (ended_by_) return;
  }
  send({to, message_kind::one_way, 0}, message.move_content_to_message());
}

void link::request(const actor::actor_name& to, caf::mailbox_element& message) {
  std::uint64_t number = 0;
  caf::actor timer_to_set;
  {
    std::lock_guard lock(mutex_);
    if (!ended_by_) {
      number = ++num_requests_;
      auto due = system_.clock().now() + options_.request_timeout;
      waiting_[number] = {message.sender, message.mid, to, due};
      if (!timer_) timer_ = spawn_timer();
      if (!std::exchange(timer_is_set_, true)) timer_to_set = timer_;
    }
  }
  if (number == 0) return respond(message.sender, message.mid, caf::make_message(lost(to, *ended_by_)));
  if (timer_to_set)
    caf::delayed_anon_send(timer_to_set, options_.request_timeout, messages::check_requests{});
  send({to, message_kind::request, number}, message.move_content_to_message());
}

void link::send(const message_head& head, const caf::message& content) {
  try {
    auto body = encode_message(head, content);
    if (!body)
      throw std::logic_error("expected a message that crosses processes, got another one for " +
                             to_string(head.to));
    options_.out->send_control(options_.remote_rank, options_.generation, *body);
    actor::count_sent_frame(body->size());
  } catch (const std::exception& problem) {
    fail(problem.what());
  }
}

void link::reply(std::uint64_t request, const caf::message& content) {
  {
    std::lock_guard lock(mutex_);
    if (ended_by_) return;
  }
  send({{}, message_kind::reply, request}, outgoing_reply(content));
}

bool link::on_reply(std::uint64_t request, const caf::message& content, std::size_t frame_bytes) {
  requests::node_type found;
  {
    std::lock_guard lock(mutex_);
    found = waiting_.extract(request);
  }
  if (!found) return false;
  const auto& of = found.mapped();
  if (auto counters = actor::counters_of(of.requester)) counters->frame_received(frame_bytes);
  respond(of.requester, of.id, incoming_reply(content, of.to));
  return true;
}

/// An actor, since nothing may block on the thread of CAF's clock. At most one delayed message at a time,
/// since the clock keeps each until it is due.
caf::actor link::spawn_timer() {
  return system_.spawn([of = weak_from_this()](caf::event_based_actor* self) -> caf::behavior {
    return {[self, of](const messages::check_requests&) {
      auto alive = of.lock();
      if (!alive) return;
      if (auto next = alive->end_overdue()) self->delayed_send(self, *next, messages::check_requests{});
    }};
  });
}

/// The time until the next request is due, if there is one.
std::optional<std::chrono::nanoseconds> link::end_overdue() {
  requests overdue;
  std::optional<std::chrono::nanoseconds> next;
  {
    std::lock_guard lock(mutex_);
    auto now = system_.clock().now();
    while (!waiting_.empty() && waiting_.begin()->second.due <= now)
      overdue.insert(waiting_.extract(waiting_.begin()));
    timer_is_set_ = !waiting_.empty();
    if (timer_is_set_) next = waiting_.begin()->second.due - now;
  }
  auto limit = std::to_string(options_.request_timeout.count()) + " s";
  for (const auto& [number, of] : overdue)
    respond(of.requester, of.id,
            caf::make_message(make_error(actor::actor_error::timed_out,
                                         to_string(of.to) + " has not replied within " + limit)));
  return next;
}

/// Of several messages that cannot be sent, only the first one is reported; none after the link has ended,
/// since then the loss or the new generation is known.
void link::fail(const std::string& cause) {
  if (end(cause)) options_.on_failure(options_.remote_rank, cause);
}

bool link::end(const std::string& cause) {
  requests unanswered;
  std::map<actor::actor_name, caf::actor> proxies;
  caf::actor timer;
  bool is_first = false;
  {
    std::lock_guard lock(mutex_);
    is_first = !ended_by_;
    if (is_first) ended_by_ = cause;
    timer.swap(timer_);
    unanswered.swap(waiting_);
    proxies.swap(proxies_);
  }
  if (timer) caf::anon_send_exit(timer, caf::exit_reason::user_shutdown);
  for (const auto& [number, of] : unanswered)
    respond(of.requester, of.id, caf::make_message(lost(of.to, cause)));
  for (const auto& [name, proxy] : proxies) end_forwarding_actor(proxy, lost(name, cause));
  return is_first;
}

}  // namespace troupe::actors::link
