// troupe_group_rounds: one member of a group whose operations are measured, or all of them as threads
// (--backend local). `troupe bench all_reduce` starts it, under a launcher or mpirun; it is a program of its
// own so that `troupe` itself needs no library but its own. Member 0 prints an object for each size.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <numeric>
#include <thread>

#include "bench/collective/collective_rounds.hpp"
#include "bench/collective/gloo_peer.hpp"
#include "bench/collective/shared_parts.hpp"
#include "bench/processes/quiet_node.hpp"
#include "troupe/collective/every_backend.hpp"
#include "troupe/collective/group/backend_registry.hpp"
#include "troupe/collective/shm/local_group.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::bench {
namespace {

struct group_rounds_options {
  std::string backend = "ucx";
  std::vector<std::int64_t> sizes_bytes = {8};
  int threads = 4;
  bool gloo = false;
  collective_round each;
};

void print(const communicator& group, const nlohmann::json& line) {
  if (group.rank() == 0) std::printf("%s\n", line.dump().c_str());
}

/// gloo: null if the group itself is measured.
void measure_all(communicator& group, gloo_peer* gloo, const group_rounds_options& options) {
  shared_parts parts(group, core_probe::size_bytes);
  core_probe probe(parts.part(group.rank()), parts.part((group.rank() + 1) % group.size()));
  for (auto size : options.sizes_bytes) {
    auto what = options.each;
    what.size_bytes = size;
    auto samples = nlohmann::json::array();
    for (const auto& sample :
         gloo ? measure_gloo(group, *gloo, probe, what) : measure_group(group, probe, what))
      samples.push_back(sample.json());
    print(group, {{"bytes", size}, {"samples", samples}});
  }
  group.barrier().wait();
}

void measure_gloo_beside(communicator& group, store& keys, const group_rounds_options& options) {
  std::unique_ptr<gloo_peer> gloo;
  try {
    auto members = group.group();
    members.name = "gloo";
    gloo = std::make_unique<gloo_peer>(members, keys, options.each.operation);
  } catch (const bad_input& absent) {
    return print(group, {{"no_gloo", absent.what()}});
  }
  measure_all(group, gloo.get(), options);
}

void run_threads(const group_rounds_options& options) {
  auto members = make_local_group(options.threads);
  std::vector<std::thread> threads;
  for (const auto& each : members)
    threads.emplace_back([&each, &options] { measure_all(*each, nullptr, options); });
  for (auto& each : threads) each.join();
}

void run_processes(const group_rounds_options& options) {
  auto self = start_launched_node();
  group_description members{"bench", std::vector<int>(static_cast<std::size_t>(self->world_size())),
                            self->rank()};
  std::iota(members.ranks.begin(), members.ranks.end(), 0);
  backend_registry backends(options.backend, every_backend(),
                            {self->rank(), self->world_size(), self->local_rank()});
  backends.set_job_token(self->group_token());
  auto group = backends.make(members, self->keys(), {});
  if (options.gloo) return measure_gloo_beside(*group, self->keys(), options);
  measure_all(*group, nullptr, options);
}

}  // namespace
}  // namespace troupe::bench

int main(int count, char** arguments) {
  using namespace troupe;
  bench::group_rounds_options options;
  CLI::App app("A member of a group whose operations are measured");
  app.add_option("--operation", options.each.operation, "all_reduce, all_gather, reduce_scatter or p2p");
  app.add_option("--backend", options.backend, "As for `troupe bench all_reduce`");
  app.add_option("--bytes", options.sizes_bytes, "Sizes")->delimiter(',');
  app.add_option("--threads", options.threads, "Members, for --backend local");
  app.add_option("--repeats", options.each.repeats, "Measurements of each size");
  app.add_flag("--gloo", options.gloo, "Measure gloo's own calls; the group is for the members to meet");
  app.add_flag("--fresh", options.each.fresh, "Owners rewrite their tensors before each call");
  CLI11_PARSE(app, count, arguments);
  try {
    options.backend == "local" ? bench::run_threads(options) : bench::run_processes(options);
    return 0;
  } catch (const bad_input& problem) {
    std::fprintf(stderr, "troupe_group_rounds: %s\n", problem.what());
    return 2;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "troupe_group_rounds: %s\n", failure.what());
    return 1;
  }
}
