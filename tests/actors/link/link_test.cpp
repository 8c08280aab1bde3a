#include "troupe/link/link.hpp"

#include <caf/sec.hpp>
#include <catch2/catch_test_macros.hpp>

#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/device.hpp"
#include "troupe/messages/gatherer.hpp"
#include "troupe/messages/scheduler.hpp"
#include "two_processes.hpp"

using namespace troupe;
using namespace troupe::actors::link;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// Rank 0 sends to a device of rank 1.
struct one_proxy : two_processes {
  probe receiver{actors};
  caf::actor proxy = here.links->proxy(1, actors::actor::actor_role::device, 3);
  one_proxy() { there.gate.bind({actors::actor::actor_role::device, 3, 2}, receiver.handle()); }

  /// The reply, after all frames are carried.
  struct replies {
    std::vector<std::uint32_t> indices;  ///< cached_sent::indices of the reply
    int num_empty = 0;
    std::vector<std::string> problems;
    std::vector<actors::actor::actor_error> codes;
  };
  std::shared_ptr<replies> request(const caf::actor& to) {
    auto got = std::make_shared<replies>();
    actors.spawn<asker>(to, got);
    actors.run();
    return got;
  }

 private:
  class asker : public caf::event_based_actor {
   public:
    asker(caf::actor_config& config, caf::actor to, std::shared_ptr<replies> got)
        : caf::event_based_actor(config), to_(std::move(to)), got_(std::move(got)) {}
    caf::behavior make_behavior() override {
      request(to_, caf::infinite, actors::messages::get_cached{7, 0, 4})
          .then(
              [got = got_](const actors::messages::cached_sent& reply) { got->indices = reply.indices; },
              [got = got_](const caf::error& problem) {
                got->problems.push_back(actors::actor::describe(problem));
                got->codes.push_back(actors::actor::code_of(problem).value_or(actors::actor::actor_error{}));
              });
      return {[](const caf::unit_t&) {}};
    }
    caf::actor to_;
    std::shared_ptr<replies> got_;
  };
};

struct failing_state {
  static constexpr const char* actor_name = "failing";
  explicit failing_state(caf::event_based_actor*) {}
  caf::behavior make_behavior() {
    return {[](const actors::messages::get_cached&) -> actors::messages::cached_sent {
      throw std::runtime_error("out of luck");
    }};
  }
};

using problems = std::vector<std::string>;
using codes = std::vector<actors::actor::actor_error>;

}  // namespace

TEST_CASE(
    "what is sent to a proxy goes to the remote process with the link's generation and the actor's name") {
  one_proxy link;
  link.actors.send(link.proxy, actors::messages::writes_lost{7, 2});
  REQUIRE(link.here.out.frames.size() == 1);
  CHECK(link.here.out.frames[0].to_rank == 1);
  CHECK(link.here.out.frames[0].generation == 7);
  auto message = decode_message(link.here.out.frames[0].body);
  CHECK(message.head == message_head{{actors::actor::actor_role::device, 3, 2}, message_kind::one_way, 0});
  link.carry();
  CHECK(link.receiver.last<actors::messages::writes_lost>().rank == 2);
  CHECK(link.receiver.num_unanswered() == 0);
}

TEST_CASE("messages to several actors behind one link keep their order") {
  one_proxy link;
  for (std::uint64_t end = 1; end <= 50; ++end) {
    actors::messages::step_credit given;
    given.end_step = end;
    link.actors.send(link.here.links->proxy(1, actors::actor::actor_role::device, end % 2), given);
  }
  REQUIRE(link.here.out.frames.size() == 50);
  for (std::uint64_t end = 1; end <= 50; ++end)
    CHECK(decode_message(link.here.out.frames[end - 1].body)
              .content.get_as<actors::messages::step_credit>(0)
              .end_step == end);
}

TEST_CASE("a link is made when it is first needed, by whoever sends first") {
  two_processes processes;
  probe device(processes.actors);
  processes.there.gate.bind({actors::actor::actor_role::device, 3, 2}, device.handle());
  CHECK(processes.here.links->num_links() == 0);
  auto proxy = processes.here.links->proxy(1, actors::actor::actor_role::device, 3);
  CHECK(processes.here.links->num_links() == 1);
  CHECK(proxy == processes.here.links->proxy(1, actors::actor::actor_role::device, 3));
  CHECK(processes.there.links->num_links() == 0);
  processes.actors.send(proxy, actors::messages::writes_lost{7, 0});
  processes.carry();
  CHECK(processes.there.links->num_links() == 0);
  CHECK_THROWS_AS(processes.here.links->proxy(0, actors::actor::actor_role::device, 3), std::logic_error);
  CHECK_THROWS_AS(processes.here.links->proxy(2, actors::actor::actor_role::device, 3), std::logic_error);
}

TEST_CASE("a request to a proxy gets the reply of the remote actor, each its own, in any order") {
  one_proxy link;
  auto first = link.request(link.proxy), second = link.request(link.proxy);
  link.carry();
  REQUIRE(link.receiver.num_unanswered() == 2);
  link.receiver.answer(actors::messages::cached_sent{{1}});
  link.receiver.answer(actors::messages::cached_sent{{2}});
  REQUIRE(link.there.out.frames.size() == 2);
  std::swap(link.there.out.frames[0], link.there.out.frames[1]);
  link.carry();
  CHECK(first->indices == std::vector<std::uint32_t>{1});
  CHECK(second->indices == std::vector<std::uint32_t>{2});
}

TEST_CASE("the remote actor's error comes with its code and its text") {
  one_proxy link;
  auto got = link.request(link.proxy);
  link.carry();
  link.receiver.answer(actors::actor::unavailable("no copy of step 7"));
  link.carry();
  CHECK(got->problems == problems{"no copy of step 7"});
  CHECK(got->codes == codes{actors::actor::actor_error::unavailable});
}

TEST_CASE("a handler that returns nothing answers a remote request with an empty message") {
  one_proxy link;
  bool confirmed = false;
  auto asker = link.actors.system().spawn([&](caf::event_based_actor* self) {
    self->request(link.proxy, caf::infinite, actors::messages::get_cached{}).then([&] { confirmed = true; });
  });
  link.carry();
  link.receiver.answer(caf::unit);
  link.carry();
  CHECK(confirmed);
}

TEST_CASE("an exception of the remote actor reaches the requester, and so does its end") {
  one_proxy link;
  link.there.gate.bind({actors::actor::actor_role::device, 3, 2},
                       link.actors.spawn<actors::actor::actor_of<failing_state>>());
  auto got = link.request(link.proxy);
  link.carry();
  CHECK(got->problems == problems{"out of luck"});
  CHECK(got->codes == codes{actors::actor::actor_error::failed});
  auto next = link.request(link.proxy);
  link.carry();
  CHECK(next->problems == problems{"device/3#2 has ended before it replied"});
  CHECK(next->codes == codes{actors::actor::actor_error::failed});
}

TEST_CASE("a request without a reply fails after the time limit, and the error names the actor") {
  one_proxy link;
  auto first = link.request(link.proxy);
  link.actors.advance(4s);
  auto second = link.request(link.proxy);
  link.carry();
  link.actors.advance(5s);
  CHECK(first->problems.empty());
  link.actors.advance(1s);
  CHECK(first->problems == problems{"device/3#2 has not replied within 10 s"});
  CHECK(first->codes == codes{actors::actor::actor_error::timed_out});
  CHECK(second->problems.empty());
  link.actors.advance(4s);
  CHECK(second->problems == problems{"device/3#2 has not replied within 10 s"});
  // The replies come too late: they are dropped and counted.
  link.receiver.answer(actors::messages::cached_sent{{1}});
  link.carry();
  CHECK(first->indices.empty());
  CHECK(link.here.gate.statistics().late_replies == 1);
}

TEST_CASE("requests leave no more than one timer behind") {
  one_proxy link;
  auto timers = link.actors.num_timers();
  for (int i = 0; i < 100; ++i) {
    auto got = link.request(link.proxy);
    link.carry();
    link.receiver.answer(actors::messages::cached_sent{{1}});
    link.carry();
    CHECK(got->indices.size() == 1);
  }
  CHECK(link.actors.num_timers() <= timers + 1);
  link.actors.advance(10s);
  CHECK(link.actors.num_timers() == timers);
}

TEST_CASE(
    "when a process is lost its requests fail and its proxies' monitors get a down message, with the cause") {
  one_proxy link;
  auto got = link.request(link.proxy);
  obituary of(link.actors, link.proxy);
  CHECK_FALSE(of.reason());
  link.here.links->end({{1, "killed by SIGKILL"}}, "generation 8 has begun");
  link.actors.run();
  auto text = "device/3#2 cannot be reached any more: rank 1 was lost: killed by SIGKILL";
  CHECK(got->problems == problems{text});
  CHECK(got->codes == codes{actors::actor::actor_error::lost});
  CHECK(of.reason() == text);
  auto late = link.request(link.proxy);
  CHECK(late->problems == problems{text});
  obituary late_one(link.actors, link.proxy);
  CHECK(late_one.reason() == text);
  obituary made_late(link.actors, link.here.links->proxy(1, actors::actor::actor_role::device, 4));
  CHECK(made_late.reason() == "device/4#2 cannot be reached any more: rank 1 was lost: killed by SIGKILL");
  link.here.out.frames.clear();
  link.actors.send(link.proxy, actors::messages::writes_lost{7, 0});
  CHECK(link.here.out.frames.empty());
}

TEST_CASE(
    "a process that the next generation leaves behind is no longer reached, and the new one has a new name") {
  one_proxy link;
  auto got = link.request(link.proxy);
  obituary of(link.actors, link.proxy);
  link.here.links->end({}, "generation 8 has begun");
  link.begin(8, 3);
  link.there.gate.bind({actors::actor::actor_role::device, 3, 3}, link.receiver.handle());
  link.carry();
  CHECK(of.reason() == "device/3#2 cannot be reached any more: generation 8 has begun");
  CHECK(got->problems.size() == 1);
  CHECK(link.there.gate.statistics().old_generation == 1);
  auto next = link.request(link.here.links->proxy(1, actors::actor::actor_role::device, 3));
  link.carry();
  link.receiver.answer(actors::messages::cached_sent{{5}});
  link.carry();
  CHECK(next->indices == std::vector<std::uint32_t>{5});
}

TEST_CASE("a message that cannot cross processes ends the link, and the error names the receiver") {
  one_proxy link;
  auto got = link.request(link.proxy);
  obituary of(link.actors, link.proxy);
  link.actors.send(link.proxy, actors::messages::quiesce{7});
  link.actors.run();
  REQUIRE(link.here.failures.size() == 1);
  CHECK(link.here.failures[0].find("device/3#2") != std::string::npos);
  CHECK(of.reason());
  CHECK(got->codes == codes{actors::actor::actor_error::lost});
}

TEST_CASE("a link that cannot send two messages at once fails once") {
  virtual_actors actors;
  struct broken final : recording_transport {
    std::function<void()> meanwhile;
    void send_control(int, std::uint64_t, std::span<const std::byte>) override {
      if (auto once = std::exchange(meanwhile, {})) once();
      throw std::runtime_error("no buffers");
    }
  } transport;
  problems failures;
  auto made = troupe::actors::link::link::make(
      actors.system(), {.remote_rank = 1,
                        .out = &transport,
                        .on_failure = [&](int, const std::string& cause) { failures.push_back(cause); }});
  auto proxy = made->proxy(actors::actor::actor_role::device, 3);
  transport.meanwhile = [&] { actors.send(proxy, actors::messages::writes_lost{7, 1}); };
  actors.send(proxy, actors::messages::writes_lost{7, 0});
  CHECK(failures == problems{"no buffers"});
}

TEST_CASE("a proxy that is no longer referenced stays with its link") {
  one_proxy link;
  link.actors.send(link.here.links->proxy(1, actors::actor::actor_role::supervisor, 1),
                   actors::messages::writes_lost{7, 2});
  CHECK(link.here.out.frames.size() == 1);
}

namespace {

/// Sends a message, or asks, when told to; answers requests.
struct chatting_state {
  static constexpr const char* actor_name = "chatting";
  chatting_state(caf::event_based_actor* self, caf::actor to) : self_(self), to_(std::move(to)) {}
  caf::behavior make_behavior() {
    return {[this](int) {
              self_->send(to_, actors::messages::get_cached{7, 0, 4});
            },
            [this](double) {
              self_->request(to_, caf::infinite, actors::messages::get_cached{7, 0, 4})
                  .then([](const actors::messages::cached_sent&) {});
            },
            [](const actors::messages::get_cached&) { return actors::messages::cached_sent{}; }};
  }
  caf::event_based_actor* self_;
  caf::actor to_;
};

}  // namespace

TEST_CASE("frames are counted by the actor that sends them and by the one that gets them, replies too") {
  two_processes processes;
  auto to = processes.actors.spawn<actors::actor::actor_of<chatting_state>>(caf::actor());
  processes.there.gate.bind({actors::actor::actor_role::device, 3, 2}, to);
  auto from = processes.actors.spawn<actors::actor::actor_of<chatting_state>>(
      processes.here.links->proxy(1, actors::actor::actor_role::device, 3));
  auto sent = actors::actor::counters_of(from), received = actors::actor::counters_of(to);
  processes.actors.send(from, 1);
  auto frame_bytes = processes.here.out.frames.front().body.size();
  CHECK(sent->read().frame_bytes_out == frame_bytes);
  CHECK(sent->read().messages_out == 1);
  processes.carry();
  CHECK(received->read().frame_bytes_in == frame_bytes);
  CHECK(received->read().messages_in == 1);
  CHECK(received->read().frame_bytes_out == 0);
  processes.actors.send(from, 0.5);
  CHECK(sent->read().frame_bytes_in == 0);
  processes.carry();
  CHECK(received->read().frame_bytes_out > 0);
  CHECK(sent->read().frame_bytes_in == received->read().frame_bytes_out);
  CHECK(received->read().frame_bytes_in == sent->read().frame_bytes_out);
  CHECK(sent->read().messages_in == 3);
}
