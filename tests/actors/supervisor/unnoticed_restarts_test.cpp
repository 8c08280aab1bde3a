// The policies of the io subtree: whichever of its children fails is restarted within the generation, and no
// other actor of the process notices.
#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

struct failing_child {
  std::string restarted;  ///< as the log names what is restarted
  std::string fault;      ///< for the fault plan; empty: the loader's batch source fails
};

const std::vector<failing_child> children_of_io = {
    {"the loader", ""},
    {"the peer copy store", "keep_copy:fail@rank=1,step=1"},
    {"the disk actor, the snapshot writer", "part_half_written:fail@rank=1"}};

/// Fails the first `num_failures` times that it is asked for `step`.
struct recovering_source : fake_source {
  recovering_source(std::uint64_t step, int num_failures)
      : fake_source(1), failing_step(step), failures_left(num_failures) {}
  batch at(std::uint64_t step) override {
    if (step == failing_step && failures_left-- > 0) throw std::runtime_error("cannot read the samples");
    return fake_source::at(step);
  }
  std::uint64_t failing_step;
  int failures_left;
};

/// Four steps with a copy after each, the first also to disk; the peer sends its copies. `child` fails
/// between.
void train_past_failure(one_process& here, const failing_child& child) {
  if (!child.fault.empty()) here.faults = fault::fault_plan(child.fault, 1, 0);
  here.define();
  here.actors.send(here.supervisor, actors::messages::add_source{
                                        std::make_shared<recovering_source>(1, child.fault.empty() ? 1 : 0)});
  here.view(1);
  here.enter(0);
  here.restore(1);
  here.receive(
      1, {actors::actor::actor_role::device, 1},
      actors::messages::step_credit{
          1, {0, actors::job::call_kind::train, 1, 100, 0, 0}, 0, 4, {{1, 1}, {2, 0}, {3, 0}, {4, 0}}, 0});
  for (std::uint64_t step = 0; step < 4; ++step) {
    here.activations_come(1, step);
    here.part_arrives(1, step + 1, 0, packed_with(7, step + 1, 0));
    here.advance(1ms);
  }
}

}  // namespace

TEST_CASE("a child of io that fails costs no generation, and the process trains on with the same stage") {
  for (const auto& child : children_of_io) {
    INFO(child.restarted);
    temp_folder folder;
    one_process here;
    here.folder = folder.path();
    train_past_failure(here, child);
    CHECK(here.logged().find("restarts=\"" + child.restarted + "\" new_generation=no") != std::string::npos);
    CHECK(here.members.requests.empty());
    CHECK(here.members.failures.empty());
    CHECK(here.members.suspects.empty());
    CHECK(here.out.begun.empty());
    CHECK(here.steps_done(1) == numbers{0, 1, 2, 3});
    CHECK(std::ranges::count(here.model->calls, "N1") == 1);
    CHECK(here.sent<actors::messages::process_restored>().size() == 1);
  }
}

TEST_CASE("a child of io that fails has as many actors beside it as before, each of which is in use") {
  for (const auto& child : children_of_io) {
    INFO(child.restarted);
    temp_folder folder, other_folder;
    one_process undisturbed, here;
    undisturbed.folder = folder.path();
    here.folder = other_folder.path();
    train_past_failure(undisturbed, {"", "keep_copy:fail@rank=1,step=1000"});
    train_past_failure(here, child);
    CHECK(here.actors.system().registry().running() == undisturbed.actors.system().registry().running());
    CHECK(undisturbed.logged().find("actor failed") == std::string::npos);
  }
}

TEST_CASE(
    "the children of io share their intensity: the fourth failure within the period costs a generation") {
  // Three failures of the loader and one of the peer copy store.
  one_process here;
  here.faults = fault::fault_plan("keep_copy:fail@rank=1,step=1", 1, 0);
  here.define();
  here.actors.send(here.supervisor, actors::messages::add_source{std::make_shared<recovering_source>(0, 3)});
  here.view(1);
  here.enter(0);
  here.restore(1);
  here.receive(
      1, {actors::actor::actor_role::device, 1},
      actors::messages::step_credit{1, {0, actors::job::call_kind::train, 1, 100, 0, 0}, 0, 1, {}, 0});
  for (int i = 0; i < 5; ++i) here.advance(200ms);
  SECTION("within the period") {
    CHECK(here.members.requests.empty());
    here.part_arrives(1, 1, 0, packed_with(7, 1, 0));
    here.advance(1s);
    INFO(here.logged());
    REQUIRE(here.members.requests.size() == 1);
    CHECK(here.members.requests[0].second.starts_with("the peer copy store on rank 1 failed: "));
  }
  SECTION("not if the first ones are longer ago than the period") {
    here.advance(31s);
    here.part_arrives(1, 1, 0, packed_with(7, 1, 0));
    here.advance(1s);
    CHECK(here.members.requests.empty());
  }
  CHECK(here.members.failures.empty());
}
