#include "troupe/inspector/findings/fault_watch.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "actors/inspector/shown_job.hpp"

using namespace troupe;
using namespace troupe::actors::inspector;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Two processes with a device each, as an inspector sees them twice a second.
struct watched {
  watched() {
    view = shown_job();
    view.replaced.clear();
    view.slowest_step_s = 0.1;
    auto& report = *view.scheduler;
    report.activity.index = report.call;
    report.activity.kind = report.kind = actors::job::call_kind::train;
    report.running = {report.job, &report.job->training};
    for (auto& [rank, process] : view.processes)
      process.report.devices[0].position = {1, actors::job::call_kind::train,
                                            schedule::device_activity::computing, 7, 0};
  }
  /// A position in the step that runs.
  void put(int rank, schedule::device_activity activity, std::uint32_t action) {
    auto& position = view.processes[rank].report.devices[0].position;
    position.activity = activity;
    position.action = action;
  }
  /// All processes report, and go on by a step if they `step`.
  void poll(bool step = false, std::vector<int> silent = {}) {
    now_ms += 500;
    view.at_ms = now_ms;
    if (step) ++view.scheduler->step;
    for (auto& [rank, process] : view.processes) {
      if (std::ranges::count(silent, rank)) {
        ++process.num_unanswered;
        continue;
      }
      process.at_ms = now_ms;
      process.num_unanswered = 0;
      if (step) ++process.report.devices[0].position.step;
    }
    found = faults.observe(view, now_ms);
  }
  void train(int polls) {
    for (int i = 0; i < polls; ++i) {
      poll(true);
      CHECK(found.empty());
    }
  }

  fault_watch faults;
  job_view view;
  std::int64_t now_ms = 1'000'000;
  std::vector<finding> found;
};

}  // namespace

TEST_CASE("a device that does not return is stuck, and whoever waits for it is not") {
  watched job;
  job.train(5);
  job.put(0, schedule::device_activity::waiting_for_tensor, 2);  // 0B0, which needs 1B0
  job.put(1, schedule::device_activity::computing, 0);
  for (int i = 0; i < 3; ++i) job.poll();
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::stuck_rank);
  CHECK(job.found[0].rank == 1);
  CHECK(job.found[0].device == 1);
  CHECK(job.found[0].actor == "1#1/device/1");
  CHECK_THAT(job.found[0].text, ContainsSubstring("does not return from 1F0") &&
                                    ContainsSubstring("device 0 waits for 1B0 of device 1"));
  auto since = job.found[0].since_ms;
  job.poll();
  CHECK(job.found[0].since_ms == since);
  CHECK(job.found[0].seen_ms == job.now_ms);
  job.poll(true);
  CHECK(job.found.empty());
}

TEST_CASE("a loader that does not return from the data set is stuck") {
  watched job;
  job.train(5);
  job.put(1, schedule::device_activity::waiting_for_samples, 0);
  job.view.processes[1].report.loader_changes = 7;
  for (int i = 0; i < 4; ++i) {
    job.put(0, schedule::device_activity::waiting_for_tensor, 2);
    job.poll();
  }
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].actor == "1#1/loader/0");
}

TEST_CASE("the limit for a device that stands follows the job's slowest steps") {
  CHECK(stuck_limit_s(0, false) == 30);
  CHECK(stuck_limit_s(0.01, true) == 1);
  CHECK(stuck_limit_s(2, true) == 8);
  CHECK(stuck_limit_s(0.01, false) == 5);
  watched job;
  job.view.slowest_step_s = 0;
  job.train(1);
  for (int i = 0; i < 58; ++i) {
    job.poll();
    CHECK(job.found.empty());
  }
}

TEST_CASE("nothing is wrong with a job that is paused, restored or between calls") {
  watched job;
  job.train(5);
  SECTION("paused") { job.view.scheduler->pause.is_paused = 1; }
  SECTION("no call") { job.view.scheduler->running = nullptr; }
  SECTION("another generation") { job.view.generation = 3; }
  for (int i = 0; i < 10; ++i) {
    job.poll();
    CHECK(job.found.empty());
  }
}

TEST_CASE("a suspended process is named, with who waits for it") {
  watched job;
  job.train(5);
  job.put(0, schedule::device_activity::waiting_for_tensor, 2);
  job.poll(false, {1});
  job.view.processes[1].is_suspended = true;
  job.poll(false, {1});
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::stopped_process);
  CHECK(job.found[0].rank == 1);
  CHECK(job.found[0].actor == "1#1/supervisor");
  CHECK_THAT(job.found[0].text, ContainsSubstring("suspended, by SIGSTOP"));
  for (int i = 0; i < 4; ++i) job.poll(false, {1});
  REQUIRE(job.found.size() == 1);
  CHECK_THAT(job.found[0].text, ContainsSubstring("device 0 waits for 1B0 of device 1"));

  // It goes on: where it was has been so for long, which is not its fault.
  job.view.processes[1].is_suspended = false;
  for (int i = 0; i < 2; ++i) {
    job.poll();
    CHECK(job.found.empty());
  }
  job.train(3);
}

TEST_CASE("a process of another host is named when it has been silent for longer than a busy machine is") {
  watched job;
  job.train(5);
  for (int i = 0; i < 5; ++i) job.poll(false, {1});
  auto is_stopped = [](const finding& one) { return one.kind == finding_kind::stopped_process; };
  CHECK(std::ranges::none_of(job.found, is_stopped));
  for (int i = 0; i < 3; ++i) job.poll(false, {1});
  CHECK(std::ranges::any_of(job.found, is_stopped));
}

TEST_CASE("an inspector that was suspended itself blames nobody") {
  watched job;
  job.train(5);
  job.now_ms += 60'000;
  for (int i = 0; i < 3; ++i) {
    job.poll(false);
    CHECK(job.found.empty());
  }
}

TEST_CASE("a member that has not entered a collective call is named, with the call and who waits") {
  watched job;
  bool knows_group = GENERATE(true, false);
  collective::collective_position in{"default", {0, 1}, 8, "all_reduce(sum, f32[4])", 1, 0.1, 0.01};
  collective::collective_position before{"default", {0, 1}, 7, "barrier", 0, 0, 0.01};
  job.view.processes[0].report.collectives = {in};
  if (knows_group) job.view.processes[1].report.collectives = {before};
  job.train(1);
  job.view.processes[0].report.collectives[0].for_s = 1.2;
  job.poll(true);
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::missing_in_collective);
  CHECK(job.found[0].rank == 1);
  CHECK_THAT(job.found[0].text, ContainsSubstring("rank 1 has not entered call 8 of group default, "
                                                  "all_reduce(sum, f32[4]), in which rank 0 waits"));
  // Calls of this group have taken as long before.
  job.view.processes[0].report.collectives[0].longest_s = 1;
  job.poll(true);
  CHECK(job.found.empty());
}

TEST_CASE("a collective call that all members are in is slow, and none is missing") {
  watched job;
  collective::collective_position in{"default", {0, 1}, 8, "barrier", 1, 30, 0.01};
  for (auto& [rank, process] : job.view.processes) process.report.collectives = {in};
  job.train(5);
}

TEST_CASE("frames that fail a check are told of for some seconds") {
  watched job;
  job.train(3);
  job.view.processes[1].report.bad_frames = 4;
  job.poll(true);
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::link_errors);
  CHECK(job.found[0].rank == 1);
  CHECK_THAT(job.found[0].text, ContainsSubstring("4 frames"));
  for (int i = 0; i < 21; ++i) job.poll(true);
  CHECK(job.found.empty());
}

namespace {

/// Ten steps in half a second, for which the device of rank 1 computes so many seconds each.
void train_at(watched& job, double busy_s) {
  for (int i = 0; i < 10; ++i) {
    actors::messages::recent_step step;
    step.step = ++job.view.scheduler->step;
    step.at_ms = job.now_ms + 50 * i;
    step.device_busy_s = {0.01, busy_s};
    job.faults.add(step);
  }
  job.view.steps_per_s = 20;
  job.poll(true);
}

/// Threads of rank 1 wait for a core so many seconds.
void wait_for_cores(watched& job, double seconds) {
  job.view.processes[1].report.core_wait_ns += static_cast<std::uint64_t>(seconds * 1e9);
}

}  // namespace

TEST_CASE("a straggler is named by device and process") {
  watched job;
  for (int i = 0; i < 10; ++i) train_at(job, 0.01);
  CHECK(job.found.empty());
  for (int i = 0; i < 4; ++i) {
    wait_for_cores(job, 0.02);  // a little, as everywhere
    train_at(job, 0.02);
  }
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::straggler);
  CHECK(job.found[0].rank == 1);
  CHECK(job.found[0].device == 1);
  CHECK_THAT(job.found[0].text, ContainsSubstring("2.0 times as long as before"));
  // In an evaluation nothing is known of the pace.
  job.view.scheduler->kind = actors::job::call_kind::evaluate;
  job.poll(true);
  CHECK(job.found.empty());
}

TEST_CASE("a device that computes longer since its process lacks cores is no straggler") {
  watched job;
  for (int i = 0; i < 10; ++i) train_at(job, 0.01);
  for (int i = 0; i < 6; ++i) {
    wait_for_cores(job, 0.08);  // of 0.1 s that it computes longer
    train_at(job, 0.02);
    CHECK(job.found.empty());
  }
  for (int i = 0; i < 4; ++i) train_at(job, 0.02);
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::straggler);
}

TEST_CASE("a device that is slow for long on too few cores is told of together with the cores") {
  watched job;
  for (int i = 0; i < 10; ++i) train_at(job, 0.01);
  for (int i = 0; i < 200 && job.found.empty(); ++i) {
    wait_for_cores(job, 0.15);
    train_at(job, 0.02);
  }
  REQUIRE(job.found.size() == 1);
  CHECK_THAT(job.found[0].text, ContainsSubstring("threads of its process wait for a core on average: the "
                                                  "machine has too few cores"));
}

TEST_CASE("a device that stands since its process lacks cores is not stuck") {
  watched job;
  job.train(5);
  job.put(0, schedule::device_activity::waiting_for_tensor, 2);
  job.put(1, schedule::device_activity::computing, 0);
  for (int i = 0; i < 6; ++i) {
    wait_for_cores(job, 0.4);
    job.poll();
    CHECK(job.found.empty());
  }
  for (int i = 0; i < 6; ++i) job.poll();
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::stuck_rank);
}

namespace {

/// Messages wait for the peer copy store of rank 1.
void let_wait(watched& job, std::uint64_t depth, double oldest_s, double running_s = 0) {
  auto& children = job.view.processes[1].report.children;
  actors::actor::child_id store{actors::actor::child_role::peer_copy_store};
  if (children.back().id != store) children.push_back({store, 1, 1, "", {}});
  auto& counts = children.back().counts;
  counts.mailbox_depth = depth;
  counts.oldest_s = oldest_s;
  counts.running_s = running_s;
}

}  // namespace

TEST_CASE("an actor whose mailbox grows is named, until messages are handled again") {
  watched job;
  job.train(3);
  for (std::uint64_t depth : {5, 10}) {
    let_wait(job, depth, 0.1 * static_cast<double>(depth));
    job.poll(true);
    CHECK(job.found.empty());
  }
  let_wait(job, 20, 1.5, 1.6);
  job.poll(true);
  REQUIRE(job.found.size() == 1);
  CHECK(job.found[0].kind == finding_kind::growing_mailbox);
  CHECK(job.found[0].rank == 1);
  CHECK(job.found[0].actor == "1#1/peer_copy_store/0");
  CHECK(job.found[0].since_ms == job.now_ms - 1000);
  CHECK(
      job.found[0].text ==
      "the mailbox of 1#1/peer_copy_store/0 has grown from 5 to 20 messages in 1.0 s; the oldest has waited "
      "for 1.5 s, and a handler has run for 1.6 s");
  job.poll(true);  // no more come, and none is handled
  CHECK(job.found.size() == 1);
  let_wait(job, 19, 2.5);
  job.poll(true);
  CHECK(job.found.empty());
}

TEST_CASE("a mailbox that is full, grows for a moment, or waits for a step is not wrong") {
  watched job;
  job.train(3);
  SECTION("messages that are handled in time") {
    for (int i = 0; i < 10; ++i) {
      let_wait(job, 10 * static_cast<std::uint64_t>(i), 0.9);
      job.poll(true);
      CHECK(job.found.empty());
    }
  }
  SECTION("a few that wait for long") {
    for (int i = 0; i < 10; ++i) {
      let_wait(job, static_cast<std::uint64_t>(i), 5);
      job.poll(true);
      CHECK(job.found.empty());
    }
  }
  SECTION("a mailbox that is emptied now and then") {
    for (int i = 0; i < 12; ++i) {
      let_wait(job, static_cast<std::uint64_t>(30 * (i % 2)), 2);
      job.poll(true);
      CHECK(job.found.empty());
    }
  }
  SECTION("an actor that takes its messages between steps of 4 s") {
    job.view.slowest_step_s = 4;
    for (int i = 0; i < 7; ++i) {
      let_wait(job, 10 * static_cast<std::uint64_t>(i), 0.5 * i);
      job.poll(true);
      CHECK(job.found.empty());
    }
  }
  SECTION("the first 10 s of a job that has made no step") {
    job.view.slowest_step_s = 0;
    for (int i = 0; i < 20; ++i) {
      let_wait(job, 10 * static_cast<std::uint64_t>(i), 0.5 * i);
      job.poll(true);
      CHECK(job.found.empty());
    }
  }
}

TEST_CASE("a process that replaces another begins with empty mailboxes") {
  watched job;
  job.train(3);
  for (std::uint64_t depth : {10, 20, 30, 40}) {
    let_wait(job, depth, 2);
    job.poll(true);
  }
  CHECK(job.found.size() == 1);
  job.view.processes[1].report.incarnation = 2;
  let_wait(job, 50, 2);
  job.poll(true);
  CHECK(job.found.empty());
}
