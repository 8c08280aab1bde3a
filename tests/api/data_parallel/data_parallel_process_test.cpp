#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>
#include <utility>

#include "api/data_parallel/replicated_model.hpp"
#include "support/processes/spawn_ranks.hpp"
#include "support/processes/world_group.hpp"
#include "support/temp_folder.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/collective/rendezvous/store.hpp"
#include "troupe/data_parallel/replica_mean.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

std::string weight_bytes(parameter& weight) {
  weight.wait_ready();
  return bytes_of(weight.value());
}

/// On one host, over messages, or on two hosts in turn.
enum class connection { memory, messages, two_hosts };

collective::network_options connected(connection how, int rank) {
  if (how == connection::messages) return {.path = collective::group_path::network};
  if (how == connection::two_hosts) return {.host = rank % 2 == 0 ? "a" : "b"};
  return {};
}

/// The bytes of all losses and of the last rank's weights after training in `num_processes` processes.
std::string train(int num_processes, data_parallel_options options, stepping mode = stepping::together,
                  connection how = connection::memory) {
  temp_folder folder;
  auto file = folder.path() / "outcome";
  spawn_ranks(num_processes, [&](test_rank& self) {
    collective::folder_store place(folder.path());
    collective::ucx_group_resources resources("token", connected(how, self.rank()));
    auto group = make_ucx_group(world_group(self), place, resources);
    auto model = small_model();
    DataParallel replicated(model, *group, options);
    auto optimizer = optimizer_of(replicated, mode, optim::Adam({.lr = 1e-2}));
    std::string outcome;
    for (std::uint64_t step = 0; step < 4; ++step) {
      auto losses = run_replicas(replicated, step);
      optimizer->apply(step);
      outcome += bytes_of(mean_over_replicas(losses, *group));
    }
    for (const auto& each : model.named_parameters()) outcome += weight_bytes(*each.target);
    if (self.rank() + 1 == num_processes) std::ofstream(file, std::ios::binary) << outcome;
    self.barrier(1000);  // no process ends while others still wait for its group
  });
  std::ostringstream found;
  found << std::ifstream(file, std::ios::binary).rdbuf();
  return found.str();
}

}  // namespace

TEST_CASE("one to five processes train one to eight replicas to the same bits") {
  constexpr data_parallel_options small{.bucket_size_mb = 0.002, .first_bucket_mb = 0};
  std::string before;
  for (int replicas = 1; replicas <= 8; ++replicas) {
    auto alone = train(1, {.num_replicas = replicas});
    CHECK(alone.size() > 8000);
    CHECK(std::exchange(before, alone) != alone);  // that of one replica less
    for (int processes = 2; processes <= 5; ++processes) {
      CAPTURE(replicas, processes);
      auto options = small;
      options.num_replicas = replicas;
      CHECK(train(processes, options, stepping::overlapped) == alone);
    }
  }
}

TEST_CASE("replicas in uneven numbers have the same bits over every path between processes") {
  for (int replicas : {4, 6}) {
    auto alone = train(1, {.num_replicas = replicas});
    for (auto how : {connection::messages, connection::two_hosts})
      for (int processes : {3, 4, 5}) {
        CAPTURE(replicas, processes, static_cast<int>(how));
        CHECK(train(processes, {.num_replicas = replicas}, stepping::overlapped, how) == alone);
        CHECK(train(processes, {.num_replicas = replicas, .gradient_as_bucket_view = false},
                    stepping::together, how) == alone);
      }
  }
}

TEST_CASE(
    "a process killed while updates are pending is an error, with its rank, for members that read the "
    "weights") {
  for (bool reads : {false, true}) {
    temp_folder folder;
    spawn_ranks(3, [&](test_rank& self) {
      collective::folder_store place(folder.path());
      collective::ucx_group_resources resources("token");
      auto group = make_ucx_group(world_group(self), place, resources);
      nn::Sequential model(nn::Linear(6, 5), nn::Linear(5, 3));
      model.materialize(1);
      DataParallel replicated(model, *group, {.bucket_size_mb = 0, .first_bucket_mb = 0});
      auto optimizer = replicated.make_optimizer(optim::Adam());
      auto pass = [&](std::uint64_t step) {
        auto x = random_tensor({2, 6}, std::to_string(self.rank()));
        auto loss = nn::CrossEntropy()(replicated.forward({x}), tensor::zeros({2}, dtype::i64), 0.5).loss;
        if (step == 1 && self.rank() == 2) self.kill(2);
        replicated.backward(loss);
        optimizer->apply(step);
      };
      pass(0);
      pass(1);  // does not wait for rank 2
      try {
        reads ? void(model.state_dict().front().value.bytes()) : pass(2);
        expect(false, "an error");
      } catch (const collective_error& error) {
        expect(error.kind() == collective_failure::lost_member, "a lost member");
        expect(error.ranks() == std::vector<world_rank>{2}, "its rank");
      }
    });
  }
}

TEST_CASE("a process killed in training is an error for the others, with its rank") {
  temp_folder folder;
  spawn_ranks(3, [&](test_rank& self) {
    collective::folder_store place(folder.path());
    collective::ucx_group_resources resources("token");
    auto group = make_ucx_group(world_group(self), place, resources);
    auto model = small_model();
    DataParallel replicated(model, *group);
    run_replica(replicated, 0);
    if (self.rank() == 2) self.kill(2);
    try {
      run_replica(replicated, 1);
      expect(false, "an error");
    } catch (const collective_error& error) {
      expect(error.kind() == collective_failure::lost_member, "a lost member");
      expect(error.ranks() == std::vector<world_rank>{2}, "its rank");
    }
  });
}
