#include "troupe/actor/counted_actor.hpp"

#include <caf/actor_cast.hpp>
#include <utility>

namespace troupe::actors::actor {
namespace {

/// What runs on this thread.
struct running_actor {
  actor_counters* counters = nullptr;  ///< null: none
  std::int64_t since_ns = 0;           ///< steady clock: when its newest handler began
};
constinit thread_local running_actor running;

/// Lets an actor run on this thread. When its mailbox is empty, another thread may take it up before this
/// one is through: the time of the handler is kept with the thread.
class running_scope {
 public:
  explicit running_scope(actor_counters& counters)
      : before_(std::exchange(running, {&counters, steady_ns()})) {
    counters.running_since(running.since_ns);
  }
  running_scope(const running_scope&) = delete;
  running_scope& operator=(const running_scope&) = delete;
  ~running_scope() {
    running.counters->stopped_running(running.since_ns);
    running = before_;
  }

 private:
  running_actor before_;
};

/// One message. Counts also if its handler throws.
class handling_scope {
 public:
  explicit handling_scope(actor_counters& counters) : counters_(counters) { counters_.taken(); }
  handling_scope(const handling_scope&) = delete;
  handling_scope& operator=(const handling_scope&) = delete;
  ~handling_scope() {
    auto now = steady_ns();
    auto begun = std::exchange(running.since_ns, now);
    counters_.running_since(now);
    if (is_skipped)
      counters_.put_back();
    else
      counters_.handled(now - begun);
  }
  bool is_skipped = false;

 private:
  actor_counters& counters_;
};

std::shared_ptr<actor_counters> counters_of(caf::abstract_actor* one) {
  auto* counted = dynamic_cast<counted_actor*>(one);
  return counted ? counted->counters() : nullptr;
}

}  // namespace

void counted_actor::enqueue(caf::mailbox_element_ptr element, caf::execution_unit* host) {
  counters_->enqueued();
  if (running.counters) running.counters->sent();
  caf::event_based_actor::enqueue(std::move(element), host);
}

caf::resumable::resume_result counted_actor::resume(caf::execution_unit* host, std::size_t most) {
  running_scope scope(*counters_);
  return caf::event_based_actor::resume(host, most);
}

caf::invoke_message_result counted_actor::consume(caf::mailbox_element& element) {
  handling_scope scope(*counters_);
  auto result = caf::event_based_actor::consume(element);
  scope.is_skipped = result == caf::invoke_message_result::skipped;
  return result;
}

bool counted_actor::cleanup(caf::error&& reason, caf::execution_unit* host) {
  auto is_first = caf::event_based_actor::cleanup(std::move(reason), host);
  counters_->close();
  return is_first;
}

std::shared_ptr<actor_counters> counters_of(const caf::actor& one) {
  return counters_of(caf::actor_cast<caf::abstract_actor*>(one));
}

std::shared_ptr<actor_counters> counters_of(const caf::strong_actor_ptr& one) {
  return one ? counters_of(one->get()) : nullptr;
}

std::shared_ptr<actor_counters> counters_of(caf::event_based_actor* self) {
  return counters_of(static_cast<caf::abstract_actor*>(self));
}

void count_sent_frame(std::uint64_t size_bytes) {
  if (!running.counters) return;
  running.counters->sent();
  running.counters->frame_sent(size_bytes);
}

}  // namespace troupe::actors::actor
