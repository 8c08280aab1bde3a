// One member of a group whose operations are measured, or all of them as threads (--backend local). Member 0
// prints what each size took.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "collective_rounds.hpp"
#include "quiet_node.hpp"
#include "troupe/collective/every_backend/every_backend.hpp"
#include "troupe/collective/group_factory.hpp"
#include "troupe/collective/local/local_group.hpp"
#include "workers.hpp"

namespace troupe::bench {
namespace {

struct collective_worker_options {
  std::string operation, backend = "ucx";
  std::vector<std::int64_t> sizes_bytes = {8};
  int threads = 4, repeats = 5;
};

void measure_all(communicator& group, const collective_worker_options& options) {
  for (auto size : options.sizes_bytes) {
    auto times = measure_round(group, {options.operation, size, options.repeats});
    nlohmann::json line{
        {"bytes", size}, {"floor_us", times.floor}, {"own_us", times.own}, {"foreign_us", times.foreign}};
    if (group.rank() == 0) std::printf("%s\n", line.dump().c_str());
  }
  group.barrier().wait();
}

void run_threads(const collective_worker_options& options) {
  auto members = make_local_group(options.threads);
  std::vector<std::thread> threads;
  for (const auto& each : members) threads.emplace_back([&each, &options] { measure_all(*each, options); });
  for (auto& each : threads) each.join();
}

void run(const collective_worker_options& options) {
  if (options.backend == "local") return run_threads(options);
  auto self = start_launched_node();
  group_description members{"bench", std::vector<int>(static_cast<std::size_t>(self->world_size())),
                            self->rank()};
  std::iota(members.ranks.begin(), members.ranks.end(), 0);
  group_factory factory(options.backend, every_backend(),
                        {self->rank(), self->world_size(), self->local_rank()});
  factory.join(self->group_token());
  auto group = factory.make(members, self->keys(), {});
  measure_all(*group, options);
}

}  // namespace

void add_collective_worker(CLI::App& app) {
  auto options = std::make_shared<collective_worker_options>();
  auto* command = app.add_subcommand("collective", "A member of a group whose operations are measured");
  command->add_option("--operation", options->operation, "all_reduce, all_gather, reduce_scatter or p2p");
  command->add_option("--backend", options->backend, "As for `troupe bench all_reduce`");
  command->add_option("--bytes", options->sizes_bytes, "Sizes")->delimiter(',');
  command->add_option("--threads", options->threads, "Members, for --backend local");
  command->add_option("--repeats", options->repeats, "Measurements of each size");
  command->callback([options] { run(*options); });
}

}  // namespace troupe::bench
