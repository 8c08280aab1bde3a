// What an inspector does with commands: whom it passes them to, and which outcome it tells.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "actors/inspector/shown_job.hpp"
#include "actors/virtual_actors.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/inspector/commands/open_commands.hpp"
#include "troupe/inspector/inspector_actor.hpp"
#include "troupe/messages/supervisor.hpp"
#include "troupe/messages/supervisor_commands.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// An inspector of two processes that takes commands; the test plays the other actors.
struct commanded_inspector {
  explicit commanded_inspector(std::shared_ptr<inspected_job> published = std::make_shared<inspected_job>())
      : out(published) {
    if (!out->commands()) out->take_commands(std::make_shared<open_commands>());
    inspector_options options;
    options.world_size = 2;
    options.out = out;
    inspector = actors.spawn<actors::actor::actor_of<inspector_state>>(options);
  }
  /// Generation `generation` has begun, and all that is asked is answered.
  void begin(std::uint64_t generation = 2) {
    actors.send(inspector, actors::messages::inspected_generation{
                               generation, {first.handle(), second.handle()}, scheduler.handle()});
    answer_polls();
  }
  void answer_polls(const actors::messages::scheduler_report& job = running_job(),
                    std::uint32_t incarnation = 0) {
    first.answer_to([](const actors::messages::inspect_process&) { return true; }, report_of_rank(0));
    second.answer_to([](const actors::messages::inspect_process&) { return true; },
                     report_of_rank(1, incarnation));
    scheduler.answer_to([](const actors::messages::inspect_scheduler&) { return true; }, job);
  }
  void command(const std::string& id, control_action action, const command_target& target = {}) {
    open_command one;
    one.id = id;
    one.command.action = action;
    one.command.level = "debug";
    one.target = target;
    REQUIRE(out->commands()->post(one) == open_commands::posted::taken);
    actors.run();
  }
  void poll(const actors::messages::scheduler_report& job = running_job(), std::uint32_t incarnation = 0) {
    actors.advance(500ms);
    answer_polls(job, incarnation);
  }
  std::string events() const { return out->events()->after(0, 1 << 20).text; }
  bool told(const std::string& id, const std::string& outcome) const {
    auto text = events();
    auto at = text.find("{\"id\":\"" + id + "\"");
    return at != text.npos &&
           text.substr(at, text.find('\n', at) - at).find("\"outcome\":\"" + outcome + "\"") !=
               std::string::npos;
  }

  virtual_actors actors;
  std::shared_ptr<inspected_job> out;
  probe first{actors}, second{actors}, scheduler{actors};
  caf::actor inspector;
};

const command_target the_process{1, 0, {}};
const command_target the_device{1, 0, actors::actor::child_id{actors::actor::child_role::device, 1}};

actors::messages::scheduler_report paused_job(std::uint64_t version, bool stands) {
  auto job = running_job();
  job.pause.version = version;
  job.pause.is_paused = 1;
  job.pause.is_reached = stands ? 1 : 0;
  return job;
}

}  // namespace

TEST_CASE("a pause is done when the scheduler has carried it out and all devices stand") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::pause);
  CHECK(one.first.last<actors::messages::carry_out_pause>().request.command ==
        actors::job::pause_command::pause);
  one.first.answer_to([](const actors::messages::carry_out_pause&) { return true; },
                      actors::messages::pause_carried_out{5});
  one.poll(paused_job(5, false));
  CHECK_FALSE(one.told("0-1", "done"));
  one.poll(paused_job(5, true));
  CHECK(one.told("0-1", "done"));
  CHECK(one.out->commands()->all().empty());
}

TEST_CASE("a resume is done when the scheduler has carried it out") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::resume);
  one.first.answer_to([](const actors::messages::carry_out_pause&) { return true; },
                      actors::messages::pause_carried_out{6});
  CHECK(one.told("0-1", "done"));
}

TEST_CASE("a pause that nobody carries out gets an outcome that says so") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::pause);
  for (int i = 0; i < 250; ++i) one.poll();
  CHECK(one.told("0-1", "timed_out"));
}

TEST_CASE("a snapshot is requested of each generation's scheduler until one has written it") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::snapshot);
  CHECK(one.scheduler.all<actors::messages::save_snapshot>().size() == 1);
  one.begin(3);
  CHECK(one.scheduler.all<actors::messages::save_snapshot>().size() == 2);
  // The first answer is of the earlier generation's scheduler.
  one.scheduler.answer_to([](const actors::messages::save_snapshot&) { return true; },
                          actors::messages::snapshot_saved{8});
  CHECK(one.told("0-1", "done"));
  CHECK_THAT(one.events(), ContainsSubstring("\"step\":8"));
}

TEST_CASE("a snapshot that the scheduler refuses is refused with its reason") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::snapshot);
  one.scheduler.answer_to([](const actors::messages::save_snapshot&) { return true; },
                          actors::actor::unavailable("no folder"));
  CHECK(one.told("0-1", "refused"));
  CHECK_THAT(one.events(), ContainsSubstring("no folder"));
}

TEST_CASE("a level of the log is done when all processes have set it, and new ones get it too") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::log_level);
  CHECK(one.second.last<actors::messages::set_log_level>().level == "debug");
  auto is_level = [](const actors::messages::set_log_level&) { return true; };
  one.first.answer_to(is_level, actors::messages::command_carried_out{});
  CHECK_FALSE(one.told("0-1", "done"));
  one.second.answer_to(is_level, actors::messages::command_carried_out{});
  CHECK(one.told("0-1", "done"));
  one.begin(3);
  CHECK(one.second.all<actors::messages::set_log_level>().size() == 2);
}

TEST_CASE("an actor is killed by its own supervisor, and the command is done when it was started again") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::kill, the_device);
  auto passed = one.second.last<actors::messages::end_actor>();
  CHECK(passed.id == "0-1");
  CHECK(passed.child == *the_device.child);
  CHECK(passed.is_failure);
  one.second.answer_to([](const actors::messages::end_actor&) { return true; },
                       actors::messages::command_carried_out{3});
  one.poll();
  CHECK_FALSE(one.told("0-1", "done"));
  auto again = report_of_rank(1);
  again.children[1].starts = 4;
  one.actors.advance(500ms);
  one.second.answer_to([](const actors::messages::inspect_process&) { return true; }, again);
  CHECK(one.told("0-1", "done"));
}

TEST_CASE("a process that was killed is done when another one has taken its place") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::kill, the_process);
  CHECK(one.second.last<actors::messages::end_process>().is_failure);
  one.begin(3);
  CHECK_FALSE(one.told("0-1", "done"));
  one.poll(running_job(), 1);
  CHECK(one.told("0-1", "done"));
}

TEST_CASE("restarts and kills are carried out one at a time") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::kill, the_process);
  one.command("0-2", control_action::restart, {0, 0, {}});
  one.command("0-3", control_action::pause);
  CHECK(one.first.all<actors::messages::end_process>().empty());
  CHECK(one.first.all<actors::messages::carry_out_pause>().size() == 1);
  one.begin(3);
  one.poll(running_job(), 1);
  one.poll(running_job(), 1);
  REQUIRE(one.first.all<actors::messages::end_process>().size() == 1);
  CHECK_FALSE(one.first.last<actors::messages::end_process>().is_failure);
}

TEST_CASE("a kill waits while the job recovers, and is refused if it does so for too long") {
  commanded_inspector one;
  one.begin();
  auto recovering = running_job();
  recovering.phase = 2;
  one.poll(recovering);
  one.command("0-1", control_action::kill, the_device);
  one.poll(recovering);
  CHECK(one.second.all<actors::messages::end_actor>().empty());
  SECTION("the job has recovered") {
    one.poll();
    CHECK(one.second.all<actors::messages::end_actor>().size() == 1);
  }
  SECTION("it does not") {
    for (int i = 0; i < 250; ++i) one.poll(recovering);
    CHECK(one.second.all<actors::messages::end_actor>().empty());
    CHECK(one.told("0-1", "refused"));
    CHECK_THAT(one.events(), ContainsSubstring("is recovering"));
  }
}

TEST_CASE("a command that its supervisor refuses is refused with its reason, and the next one follows") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::kill, the_device);
  one.command("0-2", control_action::restart, the_device);
  one.second.answer_to([](const actors::messages::end_actor&) { return true; },
                       actors::actor::unavailable("would end the job"));
  CHECK(one.told("0-1", "refused"));
  one.poll();
  CHECK(one.second.all<actors::messages::end_actor>().size() == 2);
}

TEST_CASE("a command that a recovery has overtaken is lost and not carried out twice") {
  commanded_inspector one;
  one.begin();
  one.command("0-1", control_action::kill, the_device);
  one.second.answer_to([](const actors::messages::end_actor&) { return true; },
                       make_error(actors::actor::actor_error::lost, "generation 3 has begun"));
  one.begin(3);
  auto next = report_of_rank(1);
  next.generation = 3;
  one.actors.advance(500ms);
  one.second.answer_to([](const actors::messages::inspect_process&) { return true; }, next);
  CHECK(one.told("0-1", "lost"));
  CHECK(one.second.all<actors::messages::end_actor>().size() == 1);
}

TEST_CASE("an inspector that is started again follows what was passed on, and takes what was not") {
  auto out = std::make_shared<inspected_job>();
  out->take_commands(std::make_shared<open_commands>());
  {
    commanded_inspector one(out);
    one.begin();
    one.command("0-1", control_action::kill, the_process);
    one.command("0-2", control_action::pause);
    one.command("0-3", control_action::restart, the_device);
  }
  commanded_inspector again(out);
  CHECK(again.told("0-2", "lost"));
  again.begin(3);
  CHECK(again.second.all<actors::messages::end_process>().empty());
  again.poll(running_job(), 1);
  CHECK(again.told("0-1", "done"));
  again.poll(running_job(), 1);
  CHECK(again.second.all<actors::messages::end_actor>().size() == 1);
}
