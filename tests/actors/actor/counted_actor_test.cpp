#include "troupe/actor/counted_actor.hpp"

#include <caf/skip.hpp>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "actors/virtual_actors.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/actor/use_two_workers.hpp"

using namespace troupe;
using namespace troupe::actors::actor;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// Does what it is told by a number or a word.
struct told_state {
  static constexpr const char* actor_name = "told";
  explicit told_state(caf::event_based_actor* self, caf::actor other = {}) : self_(self), other_(other) {}
  caf::behavior make_behavior() {
    return {[](int number) { return number; },
            [this](const std::string& word) -> caf::result<void> {
              if (word == "throw") throw std::runtime_error("as told");
              if (word == "quit") self_->quit();
              if (word == "later") self_->delayed_send(other_, 1s, std::string("nothing"));
              if (word == "ask") ask_other(1s);
              if (word == "become") self_->become([](double) {}, [](int number) { return number; });
              return caf::unit;
            },
            [this](double) -> caf::result<void> {
              if (is_skipping_) return caf::skip();
              return caf::unit;
            },
            [this](bool skipping) { is_skipping_ = skipping; }};
  }
  void ask_other(std::chrono::seconds limit) {
    self_->request(other_, limit, 7).then([](int) {}, [](const caf::error&) {});
  }
  caf::event_based_actor* self_;
  caf::actor other_;
  bool is_skipping_ = true;
};

/// Sends frames of so many bytes.
struct framing_state {
  static constexpr const char* actor_name = "framing";
  explicit framing_state(caf::event_based_actor*) {}
  caf::behavior make_behavior() {
    return {[](int bytes) { count_sent_frame(static_cast<std::uint64_t>(bytes)); }};
  }
};

/// An actor of whose mailbox nothing is lost sight of.
struct told_actor {
  explicit told_actor(caf::actor other = {}) : handle(actors.spawn<actor_of<told_state>>(other)) {}
  actor_counts counts() const { return counters->read(); }

  virtual_actors actors;
  caf::actor handle;
  std::shared_ptr<actor_counters> counters = counters_of(handle);
};

std::uint64_t sum(const std::vector<std::uint64_t>& counts) {
  std::uint64_t all = 0;
  for (auto one : counts) all += one;
  return all;
}

}  // namespace

TEST_CASE("messages wait until they are handled") {
  told_actor one;
  for (int i = 0; i < 5; ++i) caf::anon_send(one.handle, i);
  CHECK(one.counts().mailbox_depth == 5);
  CHECK(one.counts().messages_in == 0);
  one.actors.run();
  CHECK(one.counts().mailbox_depth == 0);
  CHECK(one.counts().messages_in == 5);
  CHECK(sum(one.counts().handler_times) == 5);
  CHECK(one.counts().running_s == 0);
}

TEST_CASE("a message that no handler takes is counted as any other") {
  told_actor one;
  obituary of(one.actors, one.handle);
  caf::anon_send(one.handle, std::vector<int>{1});
  one.actors.run();
  CHECK(one.counts().mailbox_depth == 0);
  CHECK(one.counts().messages_in == 1);
  CHECK_FALSE(of.reason());
}

TEST_CASE("requests and their responses are messages of both actors") {
  told_actor asked;
  auto asker = asked.actors.spawn<actor_of<told_state>>(asked.handle);
  asked.actors.send(asker, std::string("ask"));
  CHECK(asked.counts().messages_in == 1);
  CHECK(asked.counts().messages_out == 1);
  auto counts = counters_of(asker)->read();
  CHECK(counts.messages_in == 2);  // the word, and the response
  CHECK(counts.messages_out == 1);
  CHECK(counts.mailbox_depth == 0);
}

TEST_CASE("the time limit of a request, and a response that is too late, are messages") {
  virtual_actors actors;
  probe other(actors);
  auto asker = actors.spawn<actor_of<told_state>>(other.handle());
  actors.send(asker, std::string("ask"));
  actors.advance(2s);
  auto counters = counters_of(asker);
  CHECK(counters->read().messages_in == 2);
  other.answer(7);
  CHECK(counters->read().messages_in == 3);
  CHECK(counters->read().mailbox_depth == 0);
}

TEST_CASE("a delayed message counts when it is due") {
  told_actor to;
  auto from = to.actors.spawn<actor_of<told_state>>(to.handle);
  to.actors.send(from, std::string("later"));
  CHECK(to.counts().mailbox_depth == 0);
  CHECK(to.counts().messages_in == 0);
  CHECK(counters_of(from)->read().messages_out == 0);
  to.actors.advance(2s);
  CHECK(to.counts().messages_in == 1);
  CHECK(to.counts().mailbox_depth == 0);
}

TEST_CASE("what an actor skips waits on until it is handled") {
  told_actor one;
  one.actors.send(one.handle, 0.5);
  one.actors.send(one.handle, 0.5);
  one.actors.send(one.handle, 1);
  CHECK(one.counts().mailbox_depth == 2);
  CHECK(one.counts().messages_in == 1);
  one.actors.send(one.handle, std::string("become"));
  one.actors.send(one.handle, 1);
  CHECK(one.counts().mailbox_depth == 0);
  CHECK(one.counts().messages_in == 5);
  CHECK(sum(one.counts().handler_times) == 5);
}

TEST_CASE("a handler that throws has handled its message, and what waits is dropped with the actor") {
  told_actor one;
  obituary of(one.actors, one.handle);
  caf::anon_send(one.handle, std::string("throw"));
  for (int i = 0; i < 3; ++i) caf::anon_send(one.handle, i);
  CHECK(one.counts().mailbox_depth == 4);
  one.actors.run();
  CHECK(of.reason() == "as told");
  CHECK(one.counts().mailbox_depth == 0);
  CHECK(one.counts().oldest_s == 0);
  CHECK(one.counts().messages_in == 1);
  CHECK(one.counts().running_s == 0);
}

TEST_CASE("nothing waits for an actor that quit with a full mailbox, also what is sent later") {
  told_actor one;
  caf::anon_send(one.handle, std::string("quit"));
  for (int i = 0; i < 3; ++i) caf::anon_send(one.handle, i);
  one.actors.run();
  CHECK(one.counts().mailbox_depth == 0);
  CHECK(one.counts().messages_in == 1);
  one.actors.send(one.handle, 1);
  CHECK(one.counts().mailbox_depth == 0);
}

TEST_CASE("an actor that is ended from outside drops what waits behind the exit") {
  told_actor one;
  for (int i = 0; i < 3; ++i) caf::anon_send(one.handle, i);
  caf::anon_send_exit(one.handle, caf::exit_reason::kill);
  one.actors.run();
  CHECK(one.counts().mailbox_depth == 0);
}

TEST_CASE("counters outlive their actor") {
  std::shared_ptr<actor_counters> counters;
  {
    told_actor one;
    one.actors.send(one.handle, 1);
    counters = one.counters;
  }
  CHECK(counters->read().messages_in >= 1);
  CHECK(counters->read().mailbox_depth == 0);
}

TEST_CASE("a frame is of the actor that sends it, and of none outside of actors") {
  count_sent_frame(100);
  virtual_actors actors;
  auto one = actors.spawn<actor_of<framing_state>>();
  actors.send(one, 40);
  actors.send(one, 2);
  CHECK(counters_of(one)->read().frame_bytes_out == 42);
  CHECK(counters_of(one)->read().messages_out == 2);
}

TEST_CASE("an actor without counters has none") {
  virtual_actors actors;
  CHECK_FALSE(counters_of(probe(actors).handle()));
  CHECK_FALSE(counters_of(caf::strong_actor_ptr()));
}

TEST_CASE("the age of the oldest message grows while nobody handles it") {
  told_actor one;
  caf::anon_send(one.handle, 1);
  while (one.counts().oldest_s < 0.05) std::this_thread::sleep_for(5ms);
  caf::anon_send(one.handle, 2);
  CHECK(one.counts().oldest_s >= 0.05);
  one.actors.run();
  CHECK(one.counts().oldest_s == 0);
}

namespace {

/// Passes a number on, one less, until it is 0.
struct passing_state {
  static constexpr const char* actor_name = "passing";
  explicit passing_state(caf::event_based_actor* self) : self_(self) {}
  caf::behavior make_behavior() {
    return {[this](caf::actor next) { next_ = std::move(next); },
            [this](int hops) {
              if (hops > 0) self_->send(next_, hops - 1);
            }};
  }
  caf::event_based_actor* self_;
  caf::actor next_;
};

}  // namespace

TEST_CASE("no message is lost or counted twice between threads") {
  constexpr int num_actors = 4, num_messages = 8, hops = 5000;
  caf::actor_system_config config;
  use_two_workers(config);
  caf::actor_system system(config);
  std::vector<caf::actor> ring;
  for (int i = 0; i < num_actors; ++i)
    ring.push_back(i % 2 == 0 ? system.spawn<actor_of<passing_state>>()
                              : system.spawn<actor_of<passing_state>, caf::detached>());
  for (int i = 0; i < num_actors; ++i) caf::anon_send(ring[i], ring[(i + 1) % num_actors]);
  for (int i = 0; i < num_messages; ++i) caf::anon_send(ring[0], hops);
  auto total = [&] {
    actor_counts all;
    for (const auto& one : ring) {
      auto counts = counters_of(one)->read();
      add_totals(all, counts);
      all.mailbox_depth += counts.mailbox_depth;
    }
    return all;
  };
  constexpr std::uint64_t wanted = num_actors + num_messages * (hops + 1);
  while (sum(total().handler_times) < wanted) std::this_thread::sleep_for(1ms);
  auto all = total();
  CHECK(all.mailbox_depth == 0);
  CHECK(all.messages_in == wanted);
  CHECK(all.messages_out == num_messages * hops);
  for (const auto& one : ring) caf::anon_send_exit(one, caf::exit_reason::user_shutdown);
}
