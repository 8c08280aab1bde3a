// A snapshot at the command of someone who watches the job.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "one_scheduler.hpp"

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

namespace {

/// The command and what came of it.
class save_command {
 public:
  explicit save_command(one_scheduler& here)
      : here_(here), result_(std::make_shared<answer<actors::messages::snapshot_saved>>()) {
    asker_ = here.actors.system().spawn([&here, result = result_](caf::event_based_actor* self) {
      self->request(here.scheduler, caf::infinite, actors::messages::save_snapshot{})
          .then([result](const actors::messages::snapshot_saved& saved) { result->value = saved; },
                [result](const caf::error& problem) { result->problem = actors::actor::describe(problem); });
    });
    here.actors.run();
  }
  ~save_command() {
    caf::anon_send_exit(asker_, caf::exit_reason::kill);
    here_.actors.run();
  }
  save_command(const save_command&) = delete;
  save_command& operator=(const save_command&) = delete;
  std::optional<std::uint64_t> step() const {
    return result_->value ? std::optional(result_->value->step) : std::nullopt;
  }
  const std::string& problem() const { return result_->problem; }

 private:
  one_scheduler& here_;
  std::shared_ptr<answer<actors::messages::snapshot_saved>> result_;
  caf::actor asker_;
};

numbers on_disk_of(const one_scheduler& here) {
  numbers steps;
  for (const auto& copy : here.granted().copies)
    if (copy.to_disk) steps.push_back(copy.step);
  return steps;
}

void finish(one_scheduler& here, std::uint64_t first, std::uint64_t end) {
  for (auto step = first; step < end; ++step) {
    here.all_done(step);
    here.all_held(step + 1);
  }
}

void pause(one_scheduler& here) {
  actors::job::pause_request request;
  request.id = 1;
  here.actors.send(here.scheduler, actors::messages::pause_requested{here.with.generation, 0, 0, request});
}

}  // namespace

TEST_CASE(
    "a job that trains writes it with the next step that is not granted yet, and answers from the disk") {
  one_scheduler here({.window = 4, .on_disk = true});
  here.begin_training(100);
  save_command now(here);
  finish(here, 0, 2);
  CHECK(on_disk_of(here) == numbers{5});
  finish(here, 2, 5);
  CHECK_FALSE(now.step());
  here.all_written(5);
  CHECK(now.step() == 5);
  CHECK(here.disk->committed.size() == 1);
  // Only the one that was requested.
  finish(here, 5, 12);
  CHECK(on_disk_of(here).empty());
}

TEST_CASE("a paused job writes the state that its processes hold") {
  one_scheduler here({.window = 4, .on_disk = true});
  here.begin_training(100);
  pause(here);
  save_command now(here);
  finish(here, 0, 4);
  REQUIRE(here.supervisors[1].all<actors::messages::write_copies>().size() == 1);
  CHECK(here.supervisors[1].last<actors::messages::write_copies>().step == 4);
  here.all_written(4);
  CHECK(now.step() == 4);
  // Nothing newer: the answer is at once, and nothing is written again.
  save_command again(here);
  CHECK(again.step() == 4);
  CHECK(here.supervisors[1].all<actors::messages::write_copies>().size() == 1);
}

TEST_CASE("a job between two calls answers with the state that its last call has written") {
  one_scheduler here({.window = 4, .on_disk = true});
  here.begin_training(2);
  finish(here, 0, 2);
  here.all_written(2);
  here.all_seen(0);
  save_command now(here);
  CHECK(now.step() == 2);
  CHECK(here.supervisors[1].all<actors::messages::write_copies>().empty());
}

TEST_CASE("the last snapshot of a call answers a command that came too late for another step") {
  one_scheduler here({.window = 8, .on_disk = true});
  here.begin_training(3);
  save_command now(here);
  finish(here, 0, 3);
  here.all_written(3);
  CHECK(now.step() == 3);
}

TEST_CASE("a snapshot that cannot be written fails with the reason, and the next command is served") {
  one_scheduler here({.window = 4, .on_disk = true});
  here.begin_training(100);
  save_command now(here);
  finish(here, 0, 5);
  here.written(5, 0, "no space left");
  CHECK_THAT(now.problem(), ContainsSubstring("no space left"));
  save_command again(here);
  finish(here, 5, 9);
  numbers again_on_disk;
  for (const auto& given : here.devices[0].all<actors::messages::step_credit>())
    for (const auto& copy : given.copies)
      if (copy.to_disk && copy.step > 5) again_on_disk.push_back(copy.step);
  CHECK(again_on_disk.size() == 1);
}

TEST_CASE("a job without a folder refuses, and so does a scheduler that learns so later") {
  one_scheduler here({.window = 4});
  here.begin_training(100);
  CHECK_THAT(save_command(here).problem(), ContainsSubstring("--snapshot-dir"));
  one_scheduler early({.knows_job = false});
  save_command now(early);
  CHECK(now.problem().empty());
  early.know_job();
  CHECK_THAT(now.problem(), ContainsSubstring("--snapshot-dir"));
}

TEST_CASE("a command that comes before the restore waits for it") {
  one_scheduler here({.window = 4, .on_disk = true});
  save_command now(here);
  here.begin_training(100);
  CHECK(on_disk_of(here) == numbers{1});
  finish(here, 0, 1);
  here.all_written(1);
  CHECK(now.step() == 1);
}
