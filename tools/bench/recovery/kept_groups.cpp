#include "bench/recovery/kept_groups.hpp"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>

#include "troupe/config/environment/launch_environment.hpp"

namespace troupe::bench {
namespace {

std::int64_t num_threads() {
  std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// All of its own memory, and its part of what it shares.
std::int64_t memory_bytes() {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string word; lines >> word;)
    if (std::int64_t kb = 0; word == "Pss:" && lines >> kb) return kb * 1024;
  return 0;
}

}  // namespace

kept_groups::kept_groups(World world, int num_groups) {
  auto launched = read_launch_environment(process_environment());
  if (num_groups == 0 || (launched && launched->incarnation > 0)) return;
  add(world);  // starts what all share
  groups_.front().barrier().wait();
  auto memory_before = memory_bytes();
  auto begin = std::chrono::steady_clock::now();
  while (static_cast<int>(groups_.size()) < num_groups) add(world);
  std::chrono::duration<double> made = std::chrono::steady_clock::now() - begin;
  auto next = (world.rank() + 1) % world.world_size();
  for (auto& each : groups_) {
    auto x = tensor::full({4096}, 1.0F);
    each.all_reduce(x).wait();
    each.receive(tensor::zeros({1}), next);
  }
  if (world.rank() == 0) report(made.count(), memory_bytes() - memory_before);
}

void kept_groups::add(World& world) {
  std::vector<world_rank> all(static_cast<std::size_t>(world.world_size()));
  std::iota(all.begin(), all.end(), 0);
  groups_.push_back(world.new_group(all));
}

void kept_groups::report(double made_s, std::int64_t added_bytes) const {
  auto added = static_cast<std::int64_t>(groups_.size()) - 1;
  nlohmann::json line{{"event", "groups"},
                      {"made_s", made_s},
                      {"threads", num_threads()},
                      {"bytes_per_group", added > 0 ? added_bytes / added : 0}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace troupe::bench
