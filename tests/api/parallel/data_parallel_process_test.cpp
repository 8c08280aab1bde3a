#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <numeric>
#include <sstream>

#include "api/parallel/replicated_model.hpp"
#include "support/spawn_ranks.hpp"
#include "support/temp_folder.hpp"
#include "troupe/collective/group/store.hpp"
#include "troupe/collective/group/ucx_group.hpp"
#include "troupe/parallel/replica_mean.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

group_description world_group(const test_rank& self) {
  group_description group{"all", std::vector<world_rank>(static_cast<std::size_t>(self.size())), self.rank()};
  std::iota(group.ranks.begin(), group.ranks.end(), 0);
  return group;
}

std::string bytes_of(const tensor& value) {
  auto bytes = value.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The bytes of all losses and of rank 0's weights after training in `num_processes` processes.
std::string train(int num_processes, data_parallel_options options, stepping mode = stepping::together) {
  temp_folder folder;
  auto file = folder.path() / "outcome";
  spawn_ranks(num_processes, [&](test_rank& self) {
    folder_store place(folder.path());
    ucx_group_resources resources("token");
    auto group = make_ucx_group(world_group(self), place, resources);
    auto model = small_model();
    DataParallel replicated(model, *group, options);
    auto optimizer = optimizer_of(replicated, mode, optim::Adam({.lr = 1e-2}));
    std::string outcome;
    for (std::uint64_t step = 0; step < 4; ++step) {
      std::vector<tensor> losses;
      for (int i = 0; i < options.replicas_per_rank; ++i) losses.push_back(run_replica(replicated, step));
      optimizer->apply(step);
      outcome += bytes_of(mean_over_replicas(losses, *group));
    }
    for (const auto& each : model.state_dict()) outcome += bytes_of(each.value);
    if (self.rank() == 0) std::ofstream(file, std::ios::binary) << outcome;
    self.barrier(1000);  // no process ends while others still wait for its group
  });
  std::ostringstream found;
  found << std::ifstream(file, std::ios::binary).rdbuf();
  return found.str();
}

}  // namespace

TEST_CASE("one process with four replicas, two with two and four with one train to the same bits") {
  auto alone = train(1, {.replicas_per_rank = 4});
  CHECK(alone.size() > 9000);
  CHECK(train(2, {.replicas_per_rank = 2}) == alone);
  CHECK(train(4, {}) == alone);
  CHECK(train(4, {.bucket_size_mb = 0.002, .first_bucket_mb = 0, .gradient_as_bucket_view = false}) == alone);
  for (int num_processes : {1, 2, 4})
    CHECK(train(num_processes,
                {.bucket_size_mb = 0.002, .first_bucket_mb = 0, .replicas_per_rank = 4 / num_processes},
                stepping::overlapped) == alone);
}

TEST_CASE(
    "a process killed while updates are pending is an error, with its rank, for members that read the "
    "weights") {
  for (bool reads : {false, true}) {
    temp_folder folder;
    spawn_ranks(3, [&](test_rank& self) {
      folder_store place(folder.path());
      ucx_group_resources resources("token");
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
    folder_store place(folder.path());
    ucx_group_resources resources("token");
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
