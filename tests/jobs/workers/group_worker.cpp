// A program that runs its own loop over the groups of a World, in one of several ways:
//
//   group_worker --scenario groups|loop|late|given-up|by-hand [--victim R] [--backend ..] ...
//
// - groups: different groups of a job of five processes.
// - loop: sums 20 times; the victim kills itself at the 10th, and the others continue without it until its
//   replacement has joined.
// - late: rank 1 kills itself before it is in any group.
// - given-up: some members cancel calls that others have completed, then all form a new group.
// - by-hand: rank 1 kills itself, and the others report which calls still work.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <troupe/troupe.hpp>

#include "troupe/collective/every_backend.hpp"
#include "troupe/config/environment/launch_environment.hpp"

using namespace troupe;

namespace {

void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected " + what);
}

void say(const World& world, const std::string& what) {
  std::printf("rank %d: %s\n", world.rank().value(), what.c_str());
  std::fflush(stdout);
}

float sum_over(const ProcessGroup& group, float own) {
  auto x = tensor::full({1000}, own);
  group.all_reduce(x).wait();
  return x.values<float>()[999];
}

void use_groups(World& world) {
  auto own = static_cast<float>(world.rank());
  expect(sum_over(world.default_group(), own) == 10, "the sum of all");
  auto even = world.new_group({0, 2, 4});
  expect(even.contains(world.rank()) == (world.rank().value() % 2 == 0), "the even ranks");
  if (even.contains(world.rank())) expect(sum_over(even, own) == 6, "the sum of the even");
  auto overlapping = world.new_group({2, 1});
  if (overlapping.contains(world.rank())) expect(sum_over(overlapping, own) == 3, "the sum of the pair");
  expect(sum_over(world.new_group({world.rank()}), own) == own, "a group of one");
  auto again = world.new_group({0, 1, 2, 3, 4}), once_more = world.new_group({0, 1, 2, 3, 4});
  expect(sum_over(once_more, own) + sum_over(again, own) == 20, "two groups of all");
  auto mesh = world.mesh({{"dp", 5}, {"tp", 1}});
  expect(sum_over(mesh["dp"], own) == 10 && sum_over(mesh["tp"], own) == own, "a mesh's slices");
  auto parts = tensor::zeros({5});
  mesh.slice({"dp", "tp"}).all_gather(tensor::full({1}, own), parts).wait();
  expect(parts.values<float>()[4] == 4, "the last rank's part");
  world.barrier();
  say(world, "done");
}

std::string listed(const std::vector<world_rank>& ranks) {
  std::string text;
  for (auto rank : ranks) text += ' ' + to_string(rank);
  return text;
}

/// A step of the loop on all ranks; afterwards all have done one more.
void run_steps(const World& world, const ProcessGroup& all, int victim, float& step) {
  auto at = tensor::full({1}, step);
  all.all_reduce(at, reduce_op::max).wait();  // a replacement learns the others' step
  for (step = at.values<float>()[0]; step < 20; ++step) {
    if (world.rank() == victim && step == 10) ::kill(::getpid(), SIGKILL);
    expect(sum_over(all, static_cast<float>(world.rank().value() + 1)) == 10, "the sum of four");
  }
}

/// After the loss the survivors use a group without the victim. The restarted victim passes -1 as victim, so
/// that it is not killed again.
void run_loop(World& world, int lost, bool is_first_incarnation) {
  std::vector<world_rank> others;
  for (int rank = 0; rank < 4; ++rank)
    if (rank != lost) others.push_back(rank);
  float step = 0;
  while (step < 20) {
    try {
      run_steps(world, world.default_group(), is_first_incarnation ? lost : -1, step);
    } catch (const collective_error& error) {
      say(world, "at step " + std::to_string(static_cast<int>(step)) + " lost" + listed(error.ranks()));
      expect(sum_over(world.new_group(others), 1) == 3, "the sum of the survivors");
    }
  }
  say(world, "done");
}

/// Forms the group again after each failure, until all ranks have joined.
void regroup_until_complete(World& world, bool is_first_incarnation) {
  if (world.rank() == 1 && is_first_incarnation) ::kill(::getpid(), SIGKILL);
  for (bool met = false; !met;) {
    try {
      expect(sum_over(world.default_group(), 1) == 4, "the sum of four");
      met = true;
    } catch (const collective_error& error) {
      say(world, error.what());
    }
  }
  say(world, "done");
}

/// Rank 0 sends to rank 1, which expects something else, and rank 2 waits for both.
void give_up(World& world) {
  auto first = world.new_group({0, 1, 2});
  constexpr call_options soon{.timeout = std::chrono::milliseconds(300)};
  try {
    if (world.rank() == 0) first.send(tensor::zeros({1 << 20}), 1, soon).wait();
    if (world.rank() == 1) first.receive(tensor::zeros({3}), 0, soon).wait();
    if (world.rank() == 2) first.barrier(soon).wait();
    expect(false, "no end of the first group's calls");
  } catch (const collective_error&) {
    expect(sum_over(world.default_group(), 1) == 3, "the sum of three");
  }
  world.barrier();
  say(world, "done");
}

void lose_one_without_launcher(World& world) {
  auto all = world.default_group();
  try {
    expect(sum_over(all, 1) == 3, "the sum of three");
    if (world.rank() == 1) ::kill(::getpid(), SIGKILL);
    all.barrier().wait();
    expect(false, "no barrier without rank 1");
  } catch (const collective_error& error) {
    say(world, error.what());
  }
  sum_over(world.default_group(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  std::string scenario = "groups", victim = "2";
  auto body = [&](const job_options& options) {
    auto launched = read_launch_environment(process_environment());
    bool is_first_incarnation = !launched || launched->incarnation == 0;
    auto world = World::init(options, every_backend());
    if (scenario == "groups") use_groups(world);
    if (scenario == "loop") run_loop(world, std::stoi(victim), is_first_incarnation);
    if (scenario == "late") regroup_until_complete(world, is_first_incarnation);
    if (scenario == "given-up") give_up(world);
    if (scenario == "by-hand") lose_one_without_launcher(world);
  };
  return run_program(argc, argv, {}, body,
                     {{"--scenario", "groups, loop, late, given-up or by-hand", &scenario},
                      {"--victim", "who is killed in the loop", &victim}});
}
