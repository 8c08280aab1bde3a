#include "troupe/actor/actor_of.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "actors/virtual_actors.hpp"

using namespace troupe;
using namespace troupe::actors::actor;
using namespace troupe::testing;

namespace {

struct counter_state {
  static constexpr const char* actor_name = "counter";
  counter_state(caf::event_based_actor*, std::shared_ptr<int> alive) : alive_(std::move(alive)) { ++*alive_; }
  ~counter_state() { --*alive_; }
  caf::behavior make_behavior() {
    return {[this](int more) { return sum_ += more; },
            [](const std::string& text) -> int { throw std::runtime_error(text); }};
  }
  std::shared_ptr<int> alive_;
  int sum_ = 0;
};

}  // namespace

TEST_CASE("an actor keeps its state between messages") {
  virtual_actors actors;
  auto counter = actors.spawn<actor_of<counter_state>>(std::make_shared<int>(0));
  CHECK(ask<int>(actors, counter, 2).value == 2);
  CHECK(ask<int>(actors, counter, 3).value == 5);
}

TEST_CASE("an exception from a handler ends the actor with its text, and the state with the actor") {
  virtual_actors actors;
  auto alive = std::make_shared<int>(0);
  auto counter = actors.spawn<actor_of<counter_state>>(alive);
  obituary of(actors, counter);
  CHECK(*alive == 1);
  CHECK_FALSE(of.reason());
  actors.send(counter, std::string("no such sample"));
  CHECK(of.reason() == "no such sample");
  CHECK(*alive == 0);
  CHECK_FALSE(ask<int>(actors, counter, 1).value);
}
