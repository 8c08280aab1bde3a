#include "bench/actor/probe_actor.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <optional>

#include "actors/virtual_actors.hpp"
#include "support/recording_transport.hpp"
#include "troupe/actor/receiving_actor.hpp"

using namespace troupe;
using namespace troupe::bench;
using namespace troupe::testing;

namespace {

/// A probe whose peer is the test.
struct one_probe {
  virtual_actors actors;
  recording_transport link;
  caf::actor actor =
      actors.spawn<actors::actor::receiving_actor<probe_state>>(link, probe_options{1, 7, &link});
  std::optional<probe_times> times;

  void start(std::uint64_t messages, std::uint64_t window, bool in_full = true) {
    probe_plan plan;
    plan.messages = messages;
    plan.window = window;
    plan.answer_in_full = in_full;
    actors.send(actor, start_probe{plan, [this](probe_times result) { times = std::move(result); }});
  }
  void comes(std::uint64_t number, transport::tensor_role role = transport::tensor_role::gradient) {
    transport::tensor_tag tag;
    tag.generation = 7;
    tag.step = number;
    tag.role = role;
    actors.send(actor, probe_arrived{tag, tensor::zeros({8}, dtype::u8)});
  }
};

}  // namespace

TEST_CASE("a probe begins once the other is ready and has no more messages unanswered than it may") {
  one_probe here;
  here.start(5, 2, false);
  CHECK(here.link.tensors.empty());
  here.comes(0);
  CHECK(here.link.tensors.size() == 2);
  here.comes(1);
  CHECK(here.link.tensors.size() == 3);
  for (std::uint64_t number = 2; number <= 4; ++number) here.comes(number);
  CHECK(here.link.tensors.size() == 5);
  CHECK(!here.times);
  here.comes(5);
  REQUIRE(here.times);
  CHECK(here.times->size() == 6);
  CHECK(std::ranges::is_sorted(*here.times));
  for (const auto& sent : here.link.tensors) {
    CHECK(sent.to_rank == 1);
    CHECK(sent.tag.role == transport::tensor_role::gradient);
  }
}

TEST_CASE("a probe answers with the very tensor that came, or with one byte") {
  one_probe here;
  here.actors.send(here.actor, answer_probes{});
  REQUIRE(here.link.tensors.size() == 1);
  CHECK(here.link.tensors[0].tag.step == 0);
  here.comes(1, transport::tensor_role::activation);
  here.comes(2, transport::tensor_role::gradient);
  REQUIRE(here.link.tensors.size() == 3);
  CHECK(here.link.tensors[1].value.size_bytes() == 8);
  CHECK(here.link.tensors[2].value.size_bytes() == 1);
}

TEST_CASE("a probe that has answered may be asked again") {
  one_probe here;
  here.comes(0);
  here.start(1, 1);
  here.comes(1);
  REQUIRE(here.times);
  here.times.reset();
  here.start(1, 1);
  here.comes(1);
  REQUIRE(here.times);
  CHECK(here.times->size() == 2);
}
