#include "troupe/inspector/commands/command_target.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "actors/inspector/shown_job.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

const control_rules launched{true, 16};

control_command kill_of(int rank) {
  control_command command;
  command.action = control_action::kill;
  command.rank = rank;
  return command;
}

control_command kill_of(const std::string& actor) {
  control_command command;
  command.action = control_action::kill;
  command.actor = actor;
  return command;
}

control_command save_command() {
  control_command command;
  command.action = control_action::snapshot;
  return command;
}

command_target found(const control_command& command, const job_view& view,
                     const control_rules& rules = launched) {
  auto target = target_of(command, view, rules);
  if (const auto* why = std::get_if<control_refusal>(&target)) FAIL(why->why);
  return std::get<command_target>(target);
}

control_refusal refused(const control_command& command, const job_view& view,
                        const control_rules& rules = launched) {
  auto target = target_of(command, view, rules);
  REQUIRE(std::holds_alternative<control_refusal>(target));
  return std::get<control_refusal>(target);
}

}  // namespace

TEST_CASE("a command finds the process or the actor that it names") {
  auto view = shown_job();
  CHECK(found(control_command{}, view).rank == -1);
  CHECK(found(kill_of(1), view) == command_target{1, 1, {}});
  CHECK(found(kill_of("1#1/device/1"), view) ==
        command_target{1, 1, actors::actor::child_id{actors::actor::child_role::device, 1}});
  CHECK(to_string(found(kill_of("1#1/device/1"), view)) == "device 1 of rank 1");
}

TEST_CASE("a command for what is not there is refused with what to do") {
  auto view = shown_job();
  CHECK(refused(kill_of(2), view) == control_refusal{404, "expected a rank from 0 to 1, got 2"});
  CHECK(refused(kill_of("7#0/device/1"), view).status == 404);
  CHECK(refused(kill_of("1#0/device/1"), view).status == 409);
  CHECK_THAT(refused(kill_of("1#0/device/1"), view).why, ContainsSubstring("was replaced"));
  CHECK_THAT(refused(kill_of("0#0/loader/0"), view).why, ContainsSubstring("is not running"));
  CHECK_THAT(refused(kill_of("0#0/supervisor"), view).why, ContainsSubstring("{\"rank\": 0}"));
  view.processes.erase(1);
  CHECK_THAT(refused(kill_of(1), view).why, ContainsSubstring("has not reported yet"));
  CHECK_THAT(refused(kill_of(0), job_view()).why, ContainsSubstring("has not begun"));
}

TEST_CASE("a command that would end the job is refused") {
  auto view = shown_job();
  CHECK_THAT(refused(kill_of(1), view, {false, {}}).why, ContainsSubstring("troupe launch"));
  CHECK(found(kill_of("1#1/device/1"), view, {false, {}}).rank == 1);
  CHECK_THAT(refused(kill_of(1), view, {true, 1}).why, ContainsSubstring("--max-restarts 1"));
  CHECK(found(kill_of(1), view, {true, {}}).rank == 1);
  view.world_size = 1;
  CHECK(found(kill_of(0), view).rank == 0);  // its state is in the snapshot folder
  auto job = std::make_shared<actors::job::job_definition>(*view.scheduler->job);
  job->snapshots.folder.clear();
  view.scheduler->job = job;
  CHECK_THAT(refused(kill_of(0), view).why, ContainsSubstring("--snapshot-dir"));
  CHECK_THAT(refused(kill_of("0#0/stage/0"), view).why, ContainsSubstring("--snapshot-dir"));
  CHECK(found(kill_of("0#0/device/0"), view).rank == 0);
}

TEST_CASE("each of the stages that several lanes have on a process has an id of its own") {
  auto view = shown_job();
  auto& children = view.processes[0].report.children;
  children.push_back(children.front());
  children.back().id.replica = 3;
  children.push_back(children.back());
  children.back().id.slice = 1;
  CHECK(found(kill_of("0#0/stage/0"), view).child->replica == 0);
  auto other = found(kill_of("0#0/stage/0/replica/3"), view);
  CHECK(other.child->replica == 3);
  CHECK(to_string(other) == "stage 0 of replica 3 of rank 0");
  auto slice = found(kill_of("0#0/stage/0/replica/3/slice/1"), view);
  CHECK(slice.child->slice == 1);
  CHECK(to_string(slice) == "stage 0 of replica 3 slice 1 of rank 0");
  CHECK(refused(kill_of("0#0/stage/0/replica/2"), view).status == 404);
}

TEST_CASE("a command for the job as a whole is taken before it has begun, and waits for it") {
  CHECK(found(control_command{}, job_view()).rank == -1);
  CHECK(found(save_command(), job_view()).rank == -1);
}

TEST_CASE("a snapshot needs a folder") {
  auto view = shown_job();
  CHECK(found(save_command(), view).rank == -1);
  auto job = std::make_shared<actors::job::job_definition>(*view.scheduler->job);
  job->snapshots.folder.clear();
  view.scheduler->job = job;
  CHECK_THAT(refused(save_command(), view).why, ContainsSubstring("--snapshot-dir FOLDER"));
}

TEST_CASE("what the job would not survive now waits") {
  auto report = running_job();
  command_target process{1, 0, {}},
      device{1, 0, actors::actor::child_id{actors::actor::child_role::device, 1}};
  CHECK(reason_to_wait(process, &report, 2).empty());
  CHECK_THAT(reason_to_wait(process, nullptr, 2), ContainsSubstring("is recovering"));
  report.committed_step = 0;
  report.step_on_disk.reset();
  CHECK_THAT(reason_to_wait(process, &report, 2), ContainsSubstring("held by two processes"));
  CHECK(reason_to_wait(device, &report, 2).empty());
  report.step = 0;
  CHECK(reason_to_wait(process, &report, 2).empty());
  report.phase = 2;  // restoring
  CHECK_FALSE(reason_to_wait(device, &report, 2).empty());
  report.phase = 0;  // gathering, and nothing is restored yet
  report.hosts = {};
  CHECK_FALSE(reason_to_wait(device, &report, 2).empty());
  auto alone = running_job();
  alone.step_on_disk.reset();
  CHECK_THAT(reason_to_wait(process, &alone, 1), ContainsSubstring("on disk"));
}
