// Sharded training in processes: bits over every path, and the loss of one.
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>

#include "api/fsdp/sharded_training.hpp"
#include "support/processes/spawn_ranks.hpp"
#include "support/processes/world_group.hpp"
#include "support/temp_folder.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

std::string bytes_of_all(const std::vector<named_tensor>& weights) {
  std::string result;
  for (const auto& each : weights) result += bytes_of(each.value);
  return result;
}

std::string train(int num_processes, shard_strategy strategy, const collective::network_options& network) {
  temp_folder folder;
  auto file = folder.path() / "outcome";
  spawn_ranks(num_processes, [&](test_rank& self) {
    collective::folder_store place(folder.path());
    auto own = network;
    if (!own.host.empty()) own.host = self.rank() % 2 == 0 ? "a" : "b";
    collective::ucx_group_resources resources("token", own);
    auto group = make_ucx_group(world_group(self), place, resources);
    auto example = tokens();
    auto model = materialized(example);
    FullyShardedDataParallel sharded(*model, *group,
                                     {.strategy = strategy, .unit_size_mb = small_units, .num_replicas = 6});
    auto optimizer = sharded.make_optimizer(optim::Adam({.lr = 1e-2}));
    std::vector<float> losses;
    for (std::uint64_t step = 0; step < 3; ++step) {
      run_sharded_passes(sharded, example, {.num_replicas = 6}, step, losses);
      optimizer->apply(step);
    }
    auto outcome = bytes_of_all(sharded.state_dict());
    if (self.rank() + 1 == num_processes) std::ofstream(file, std::ios::binary) << outcome;
    self.barrier(1000);  // no process ends while others still wait for its group
  });
  std::ostringstream found;
  found << std::ifstream(file, std::ios::binary).rdbuf();
  return found.str();
}

}  // namespace

TEST_CASE("processes train shards to the bits of one process without, over every path between them") {
  auto whole = bytes_of_all(train_whole(tokens(), {.num_replicas = 6}).weights);
  CHECK(whole.size() > 100'000);
  for (auto strategy : {shard_strategy::optimizer, shard_strategy::grad, shard_strategy::full}) {
    CAPTURE(to_string(strategy));
    CHECK(train(3, strategy, {}) == whole);
    CHECK(train(2, strategy, {.path = collective::group_path::network}) == whole);
  }
  CHECK(train(6, shard_strategy::full, {.host = "of two"}) == whole);
}

TEST_CASE("a process killed between gathers, in a backward pass or in a step is an error with its rank") {
  for (int when : {0, 1, 2}) {
    temp_folder folder;
    spawn_ranks(3, [&](test_rank& self) {
      collective::folder_store place(folder.path());
      collective::ucx_group_resources resources("token");
      auto group = make_ucx_group(world_group(self), place, resources);
      auto example = images();
      auto model = materialized(example);
      FullyShardedDataParallel sharded(*model, *group, {.unit_size_mb = small_units});
      auto optimizer = sharded.make_optimizer(optim::Adam());
      auto step = [&](std::uint64_t number) {
        bool dies = number == 1 && self.rank() == 2;
        if (dies && when == 0) self.kill(2);
        auto forward = [&](const variable& x) { return sharded.forward(x); };
        auto loss = example.loss(number, self.rank(), forward);
        if (dies && when == 1) self.kill(2);
        sharded.backward(loss);
        if (dies && when == 2) self.kill(2);
        optimizer->apply(number);
      };
      step(0);
      try {
        for (std::uint64_t number = 1; number < 4; ++number) step(number);
        expect(false, "an error");
      } catch (const collective_error& error) {
        expect(error.kind() == collective_failure::lost_member, "a lost member");
        expect(error.ranks() == std::vector<world_rank>{2}, "its rank");
      }
    });
  }
}
