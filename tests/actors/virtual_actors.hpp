#pragma once
#include <algorithm>
#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/atom.hpp>
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/message_view.hpp>
#include <caf/response_promise.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/send.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "troupe/actor/actor_error.hpp"
#include "troupe/actor/message_storage.hpp"

namespace troupe::testing {

/// Actors without threads and in virtual time: nothing happens but in run() and advance().
class virtual_actors {
 public:
  explicit virtual_actors(std::size_t messages_per_turn = 1000)
      : system_(configure(config_, messages_per_turn)) {}
  virtual_actors(const virtual_actors&) = delete;
  virtual_actors& operator=(const virtual_actors&) = delete;
  ~virtual_actors() {
    for (const auto& one : mine_) caf::anon_send_exit(one, caf::exit_reason::kill);
    mine_.clear();
    run();
  }

  caf::actor_system& system() { return system_; }
  caf::scheduler::test_coordinator& coordinator() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  /// Spawns an actor that ends with this object.
  template <class Actor, class... Args>
  caf::actor spawn(Args&&... args) {
    return mine_.emplace_back(system_.spawn<Actor>(std::forward<Args>(args)...));
  }

  template <class... Message>
  void send(const caf::actor& to, Message... message) {
    caf::anon_send(to, std::move(message)...);
    run();
  }

  /// Runs actors until all mailboxes are empty. No time passes.
  void run() { coordinator().run(); }
  /// One turn of one actor, any of those that have something to do; false if there is none.
  bool run_any(std::mt19937& random) {
    auto& jobs = coordinator().jobs;
    if (jobs.empty()) return false;
    auto chosen = jobs.begin() + static_cast<std::ptrdiff_t>(random() % jobs.size());
    std::rotate(jobs.begin(), chosen, chosen + 1);
    return coordinator().try_run_once();
  }
  /// Delayed messages and time limits of requests that are not over.
  std::size_t num_timers() { return coordinator().clock().schedule().size(); }
  void advance(std::chrono::nanoseconds time) {
    coordinator().advance_time(time);
    run();
  }

 private:
  static caf::actor_system_config& configure(caf::actor_system_config& config,
                                             std::size_t messages_per_turn) {
    config.set("scheduler.policy", caf::atom("testing"));
    config.set("scheduler.max-throughput", messages_per_turn);
    return config;
  }
  caf::actor_system_config config_;
  caf::actor_system system_;
  std::vector<caf::actor> mine_;
};

/// To a probe: deliver a reply. CAF wants it done by the actor that promised it.
struct deliver_reply {
  std::function<void()> deliver;
};

}  // namespace troupe::testing

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::testing::deliver_reply)

namespace troupe::testing {

/// An actor that keeps all messages it gets, and answers requests when it is told to.
class probe {
  using requests = std::deque<std::pair<caf::message, caf::response_promise>>;

 public:
  explicit probe(virtual_actors& actors)
      : actors_(actors),
        kept_(std::make_shared<std::vector<caf::message>>()),
        unanswered_(std::make_shared<requests>()) {
    handle_ = actors.spawn<keeper>(kept_, unanswered_);
  }
  const caf::actor& handle() const { return handle_; }

  /// Those of one type, in the order they came.
  template <class Message>
  std::vector<Message> all() const {
    std::vector<Message> found;
    for (const auto& one : *kept_)
      if (one.match_elements<Message>()) found.push_back(one.get_as<Message>(0));
    return found;
  }
  /// The newest of one type; throws if there is none.
  template <class Message>
  Message last() const {
    auto found = all<Message>();
    if (found.empty()) throw std::runtime_error("[probe] expected a message of this type, got none");
    return found.back();
  }
  std::size_t num_unanswered() const { return unanswered_->size(); }
  /// Answers the oldest request with a value, a caf::error or caf::unit (an empty message); throws if there
  /// is none.
  template <class Reply>
  void answer(Reply reply) {
    if (unanswered_->empty()) throw std::runtime_error("[probe] expected a request to answer, got none");
    auto promise = std::move(unanswered_->front().second);
    unanswered_->pop_front();
    deliver(std::move(promise), std::move(reply));
  }
  /// Answers all requests of a type for which `is_meant` holds; there may be none.
  template <class Is, class Reply>
  void answer_to(Is is_meant, Reply reply) {
    using request = std::decay_t<
        typename caf::detail::tl_head<typename caf::detail::get_callable_trait<Is>::arg_types>::type>;
    for (auto one = unanswered_->begin(); one != unanswered_->end();) {
      if (!one->first.match_elements<request>() || !is_meant(one->first.get_as<request>(0))) {
        ++one;
        continue;
      }
      auto promise = std::move(one->second);
      one = unanswered_->erase(one);
      deliver(std::move(promise), reply);
    }
  }
  std::size_t size() const { return kept_->size(); }
  void clear() { kept_->clear(); }

 private:
  template <class Reply>
  void deliver(caf::response_promise promise, Reply reply) {
    actors_.send(handle_, deliver_reply{[promise, reply]() mutable { promise.deliver(std::move(reply)); }});
  }
  class keeper : public caf::event_based_actor {
   public:
    keeper(caf::actor_config& config, std::shared_ptr<std::vector<caf::message>> kept,
           std::shared_ptr<requests> unanswered)
        : caf::event_based_actor(config), kept_(std::move(kept)), unanswered_(std::move(unanswered)) {
      set_default_handler(
          [this](caf::scheduled_actor*, caf::message_view& content) -> caf::result<caf::message> {
            auto message = content.move_content_to_message();
            kept_->push_back(message);
            auto promise = make_response_promise();
            if (!promise.async()) unanswered_->emplace_back(message, promise);
            return caf::message();
          });
    }
    caf::behavior make_behavior() override {
      return {[](const deliver_reply& command) { command.deliver(); }};
    }
    /// A promise refers to the actor that made it, which would never be freed.
    void on_exit() override { unanswered_->clear(); }

   private:
    std::shared_ptr<std::vector<caf::message>> kept_;
    std::shared_ptr<requests> unanswered_;
  };
  virtual_actors& actors_;
  std::shared_ptr<std::vector<caf::message>> kept_;
  std::shared_ptr<requests> unanswered_;
  caf::actor handle_;
};

/// What came of a request: a value, a problem, or neither while it is unanswered.
template <class Reply>
struct answer {
  std::optional<Reply> value;
  std::string problem;
};

/// Sends a request and runs the actors.
template <class Reply, class Request>
answer<Reply> ask(virtual_actors& actors, const caf::actor& to, Request request) {
  auto result = std::make_shared<answer<Reply>>();
  auto asker = actors.system().spawn([&](caf::event_based_actor* self) {
    self->request(to, caf::infinite, std::move(request))
        .then([result](const Reply& reply) { result->value = reply; },
              [result](const caf::error& problem) { result->problem = actors::actor::describe(problem); });
  });
  actors.run();
  caf::anon_send_exit(asker, caf::exit_reason::kill);
  actors.run();
  return *result;
}

/// Why an actor ended, or none while it lives.
class obituary {
 public:
  obituary(virtual_actors& actors, const caf::actor& of)
      : reason_(std::make_shared<std::optional<std::string>>()) {
    actors.spawn<watcher>(of, reason_);
    actors.run();
  }
  const std::optional<std::string>& reason() const { return *reason_; }

 private:
  class watcher : public caf::event_based_actor {
   public:
    watcher(caf::actor_config& config, const caf::actor& of,
            std::shared_ptr<std::optional<std::string>> reason)
        : caf::event_based_actor(config) {
      monitor(of);
      set_down_handler(
          [reason](const caf::down_msg& down) { *reason = actors::actor::describe(down.reason); });
    }
    caf::behavior make_behavior() override {
      return {[](const caf::unit_t&) {}};
    }
  };
  std::shared_ptr<std::optional<std::string>> reason_;
};

}  // namespace troupe::testing
