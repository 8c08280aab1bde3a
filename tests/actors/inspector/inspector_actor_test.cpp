#include "troupe/inspector/inspector_actor.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "actors/inspector/shown_job.hpp"
#include "actors/virtual_actors.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/supervisor.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// An inspector of two processes, whose actors the test plays.
struct inspected {
  explicit inspected(std::shared_ptr<inspected_job> published = std::make_shared<inspected_job>())
      : out(published) {
    inspector_options options;
    options.world_size = 2;
    options.out = out;
    inspector = actors.spawn<actors::actor::actor_of<inspector_state>>(options);
  }
  void begin(std::uint64_t generation) {
    actors.send(inspector, actors::messages::inspected_generation{
                               generation, {first.handle(), second.handle()}, scheduler.handle()});
  }
  void answer_all() {
    first.answer(report_of_rank(0));
    second.answer(report_of_rank(1));
    scheduler.answer(running_job());
  }
  std::string events() const { return out->events()->after(0, 1 << 20).text; }

  virtual_actors actors;
  std::shared_ptr<inspected_job> out;
  probe first{actors}, second{actors}, scheduler{actors};
  caf::actor inspector;
};

}  // namespace

TEST_CASE("an inspector asks each actor when a generation begins, and publishes what they tell") {
  inspected one;
  CHECK_FALSE(one.out->view());
  one.begin(2);
  one.answer_all();
  auto view = one.out->view();
  REQUIRE(view);
  CHECK(view->generation == 2);
  CHECK(view->processes.size() == 2);
  CHECK(view->processes.at(1).report.pid == 101);
  REQUIRE(view->scheduler);
  CHECK(view->scheduler->step == 7);
  CHECK(one.out->metrics().after(0, 10).steps.size() == 2);
  CHECK_THAT(one.events(),
             ContainsSubstring("event: generation\ndata: {\"generation\":2,") &&
                 ContainsSubstring("event: step\ndata: {\"step\":7,") &&
                 ContainsSubstring(
                     "event: call\ndata: {\"call\":1,\"kind\":\"train\",\"state\":\"running\",\"at_ms\":"));
}

TEST_CASE("an inspector asks again with each poll, for what is new") {
  inspected one;
  one.begin(2);
  one.answer_all();
  one.actors.advance(500ms);
  CHECK(one.first.all<actors::messages::inspect_process>().size() == 2);
  CHECK(one.scheduler.last<actors::messages::inspect_scheduler>().after == 2);
  auto known = one.out->events()->newest_id();
  auto same = running_job();
  same.steps = {2, 0, {}};
  one.scheduler.answer(same);
  one.first.answer(report_of_rank(0));
  CHECK(one.out->events()->newest_id() == known);
}

TEST_CASE("an actor that does not answer has one request at a time, and its age shows") {
  inspected one;
  one.begin(2);
  one.answer_all();
  for (int i = 0; i < 6; ++i) one.actors.advance(500ms);
  CHECK(one.second.all<actors::messages::inspect_process>().size() == 2);
  CHECK(one.out->view()->processes.at(1).num_unanswered > 3);
  // After the time limit it is asked again.
  for (int i = 0; i < 8; ++i) one.actors.advance(500ms);
  CHECK(one.second.all<actors::messages::inspect_process>().size() == 3);
}

TEST_CASE("answers of an earlier generation are dropped") {
  inspected one;
  one.begin(2);
  one.begin(3);
  one.first.answer(report_of_rank(0));
  CHECK(one.out->view()->processes.empty());
  one.actors.advance(500ms);
  one.first.answer(report_of_rank(0));
  CHECK(one.out->view()->processes.size() == 1);
}

TEST_CASE("a process that was replaced stays in the view, and actors that failed are events") {
  inspected one;
  one.begin(2);
  one.answer_all();
  one.actors.advance(500ms);
  one.second.answer(report_of_rank(1, 1));
  auto failed = report_of_rank(0);
  failed.children[1].starts = 4;
  failed.children[1].reason = "hung";
  one.first.answer(failed);
  auto view = one.out->view();
  CHECK(view->processes.at(1).report.incarnation == 1);
  REQUIRE(view->replaced.size() == 1);
  CHECK(view->replaced[0].report.incarnation == 0);
  CHECK_THAT(one.events(),
             ContainsSubstring("{\"rank\":1,\"incarnation\":1,\"pid\":101,") &&
                 ContainsSubstring("\"role\":\"device\",\"number\":0,\"replica\":null,\"slice\":null,"
                                   "\"state\":\"running\",\"starts\":4,\"reason\":\"hung\""));
}

TEST_CASE("recoveries are kept, a bounded number of them") {
  inspected one;
  one.begin(2);
  cluster::recovery_report report;
  report.loss = {1, "killed by SIGKILL"};
  for (std::size_t i = 0; i < actors::messages::job_history::max_kept + 3; ++i) {
    report.generation = 2 + i;
    one.actors.send(one.inspector, actors::messages::inspected_recovery{report});
  }
  one.actors.advance(500ms);
  CHECK(one.out->view()->history.recoveries.size() == actors::messages::job_history::max_kept);
  CHECK(one.out->view()->history.num_recoveries == actors::messages::job_history::max_kept + 3);
  CHECK_THAT(one.events(), ContainsSubstring("event: recovery"));
}

TEST_CASE(
    "an inspector of a process that was replaced learns of earlier recoveries, and tells younger ones") {
  inspected one;
  one.begin(3);
  actors::messages::past_recovery before;
  before.report.generation = 2;
  before.report.loss = {1, "killed by SIGKILL"};
  actors::messages::job_history known{10, {before}, 1};
  auto old = report_of_rank(0), young = report_of_rank(1);
  old.generation = young.generation = 3;
  old.history = known.summary();
  one.first.answer(old);
  one.second.answer(young);
  CHECK(one.out->view()->history.num_recoveries == 0);
  one.actors.advance(500ms);
  CHECK(one.first.last<actors::messages::inspect_process>().wants_history == 1);
  CHECK(one.second.last<actors::messages::inspect_process>().wants_history == 0);
  old.history = known;
  one.first.answer(old);
  one.second.answer(young);
  CHECK(one.out->view()->history.num_recoveries == 1);
  CHECK(one.out->view()->history.recoveries.at(0).report.loss.rank == 1);
  CHECK(one.out->view()->history.started_ms == 10);
  one.actors.advance(500ms);
  CHECK(one.first.last<actors::messages::inspect_process>().wants_history == 0);
  CHECK(one.first.last<actors::messages::inspect_process>().history.recoveries.empty());
  CHECK(one.second.last<actors::messages::inspect_process>().history.recoveries.size() == 1);
}

TEST_CASE("an inspector that is started again goes on with what was published") {
  auto out = std::make_shared<inspected_job>();
  {
    inspected one(out);
    one.begin(2);
    one.answer_all();
  }
  inspected again(out);
  again.begin(2);
  CHECK(again.out->view()->processes.size() == 2);
}
