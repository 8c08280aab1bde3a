#include "troupe/supervisor/state/supervision_tree.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::supervisor;
using namespace std::chrono_literals;

namespace {

constexpr supervision_tree::time_point now{1000s};
constexpr child_id the_loader{child_role::loader, 0}, the_disk{child_role::disk, 0},
    the_writer{child_role::snapshot_writer, 0};

constexpr child_id stage_child(int number) { return {child_role::stage, number}; }
constexpr child_id device_child(int number) { return {child_role::device, number}; }

/// Two devices, the first with two stages.
supervision_tree example_tree(int io_intensity = 3, int compute_intensity = 3) {
  subtree_options options;
  options.io.intensity = io_intensity;
  options.compute.intensity = compute_intensity;
  supervision_tree tree(options);
  tree.set_branches(
      {{subtree::io, recovery::restart_policy::one_for_one, {the_loader}},
       {subtree::io, recovery::restart_policy::rest_for_one, {the_disk, the_writer}},
       {subtree::compute, recovery::restart_policy::rest_for_one, {stage_child(0), device_child(0)}},
       {subtree::compute, recovery::restart_policy::rest_for_one, {stage_child(1), device_child(1)}},
       {subtree::compute, recovery::restart_policy::rest_for_one, {stage_child(2), device_child(0)}}});
  return tree;
}

using child_list = std::vector<child_id>;

}  // namespace

TEST_CASE("a child of io is restarted alone, or with what depends on it") {
  auto tree = example_tree();
  CHECK(tree.on_failure(the_loader, now) == restart_command{restart_action::restart, {the_loader}, 0ms, 0});
  CHECK(tree.on_failure(the_writer, now) == restart_command{restart_action::restart, {the_writer}, 50ms, 1});
  CHECK(tree.on_failure(the_disk, now) ==
        restart_command{restart_action::restart, {the_disk, the_writer}, 100ms, 2});
}

TEST_CASE("a stage is restarted with its device, a device alone, and both with a new generation") {
  auto restarted = [](child_id failed) {
    auto command = example_tree().on_failure(failed, now);
    CHECK(command.action == restart_action::new_generation);
    return command.children;
  };
  CHECK(restarted(stage_child(0)) == child_list{stage_child(0), device_child(0)});
  CHECK(restarted(stage_child(2)) == child_list{stage_child(2), device_child(0)});
  CHECK(restarted(stage_child(1)) == child_list{stage_child(1), device_child(1)});
  CHECK(restarted(device_child(0)) == child_list{device_child(0)});
}

TEST_CASE("a restart on command takes the same children as a failure, at once, and does not count") {
  auto tree = example_tree(1, 1);
  for (int i = 0; i < 3; ++i) {
    CHECK(tree.on_requested_restart(the_disk) ==
          restart_command{restart_action::restart, {the_disk, the_writer}, 0ms, 0});
    CHECK(tree.on_requested_restart(stage_child(1)) ==
          restart_command{restart_action::new_generation, {stage_child(1), device_child(1)}, 0ms, 0});
  }
  CHECK(tree.on_failure(device_child(0), now).action == restart_action::new_generation);
}

TEST_CASE("it is known before whether a failure would end the job") {
  auto tree = example_tree(1, 1);
  CHECK_FALSE(tree.would_fail_job(device_child(0), now));
  tree.on_failure(device_child(0), now);
  CHECK(tree.would_fail_job(device_child(0), now));
  CHECK_FALSE(tree.would_fail_job(the_loader, now));
  tree.on_failure(the_loader, now);
  CHECK(tree.would_fail_job(the_loader, now));
  CHECK_FALSE(tree.would_fail_job(the_loader, now + 31s));
}

TEST_CASE("a child that is in no branch counts to compute") {
  auto tree = example_tree();
  CHECK(tree.on_failure({child_role::gatherer, 0}, now) ==
        restart_command{restart_action::new_generation, {{child_role::gatherer, 0}}, 0ms, 0});
}

TEST_CASE("beyond its intensity io costs a new generation, and beyond that of compute the job") {
  auto tree = example_tree(2, 1);
  for (int i = 0; i < 2; ++i) CHECK(tree.on_failure(the_loader, now).action == restart_action::restart);
  CHECK(tree.on_failure(the_loader, now) ==
        restart_command{restart_action::new_generation, {the_loader}, 0ms, 2});
  CHECK(tree.on_failure(the_loader, now) == restart_command{restart_action::fail_job, {}, 0ms, 3});
}

TEST_CASE("the subtrees count for themselves") {
  auto tree = example_tree(1, 1);
  CHECK(tree.on_failure(the_loader, now).action == restart_action::restart);
  CHECK(tree.on_failure(device_child(0), now).action == restart_action::new_generation);
  CHECK(tree.on_failure(device_child(0), now) == restart_command{restart_action::fail_job, {}, 0ms, 1});
}

TEST_CASE("restarts longer ago than the period do not count") {
  auto tree = example_tree(1, 1);
  for (auto later = now; later < now + 200s; later += 31s) {
    CHECK(tree.on_failure(the_loader, later) ==
          restart_command{restart_action::restart, {the_loader}, 0ms, 0});
    CHECK(tree.on_generation_wanted(later).action == restart_action::new_generation);
  }
}

TEST_CASE("a generation that is wanted for another reason counts as a restart of compute") {
  auto tree = example_tree(3, 1);
  CHECK(tree.on_generation_wanted(now) == restart_command{restart_action::new_generation, {}, 0ms, 0});
  CHECK(tree.on_failure(stage_child(0), now).action == restart_action::fail_job);
}

TEST_CASE("new branches do not forgive restarts") {
  auto tree = example_tree(3, 1);
  tree.on_failure(stage_child(0), now);
  tree.set_branches({});
  CHECK(tree.on_failure(device_child(7), now).action == restart_action::fail_job);
}
