// A stage whose replicas free the gradients that others have read: shard_strategy::grad.
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <vector>

#include "api/pipeline/replica_steps.hpp"
#include "api/pipeline/tested_programs.hpp"
#include "support/devices.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/tensor/memory_account.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

constexpr std::size_t large_bytes = sizeof(float) * (200 * 150 + 150 * 200);

nn::Sequential two_large_weights() {
  return nn::Sequential(nn::Linear(200, 150), nn::ReLU(), nn::Linear(150, 200), nn::ReLU(),
                        nn::Linear(200, 3));
}

/// The program of one of two replicas, and what it holds of gradients.
struct charged_program {
  explicit charged_program(double clip_grad_norm = 0, const nn::Sequential& model = two_large_weights()) {
    detail::module_program_options options{.optimizer = optim::Adam(), .seed = 7, .num_shards = 2};
    options.numerics.shard = shard_strategy::grad;
    options.numerics.clip_grad_norm = clip_grad_norm;
    program = programs_of(model, 1, options)({.stage = 0});
  }
  std::size_t held() const {
    return account.statistics(device_under_test().type)
        .by_use[static_cast<std::size_t>(memory_use::gradients)];
  }
  bool is_own(int bucket) const { return program->owner_of(layout::mesh_axis::dp, bucket) == 0; }
  /// All buckets leave.
  std::vector<tensor> give() {
    std::vector<tensor> copies;
    for (int bucket = 0; bucket < program->num_buckets(layout::mesh_axis::dp, 0); ++bucket)
      copies.push_back(program->bucket(layout::mesh_axis::dp, bucket).to({}).clone());
    return copies;
  }
  /// As if the other replica had no gradient, of a bucket that this one owns; else its owner has read it.
  void take(int bucket, const tensor& sum) {
    program->take_sums(layout::mesh_axis::dp, bucket,
                       is_own(bucket) ? std::vector{sum} : std::vector<tensor>());
  }

  memory_account account = memory_account::make();
  account_scope charged{account};
  std::unique_ptr<program::stage_program> program;
};

}  // namespace

TEST_CASE("a gradient is freed when the owners of all its pieces have read it, before the step") {
  charged_program of;
  CHECK(of.held() == 0);
  for (std::uint64_t step = 0; step < 2; ++step) {
    compute(*of.program, step);
    CHECK(of.held() >= large_bytes);
    auto sums = of.give();
    REQUIRE(sums.size() == 4);  // two of small weights and ends, two of blocks
    for (std::size_t bucket = 0; bucket < sums.size(); ++bucket)
      of.take(static_cast<int>(bucket), sums[bucket]);
    CHECK(of.held() < large_bytes / 3);  // the sums of this replica's small pieces
    of.program->apply(step);
    CHECK(of.held() == 0);
  }
}

TEST_CASE(
    "where norms are clipped the sums of owned pieces stay until the step, and go when it is given up") {
  charged_program of(0.01);
  for (std::uint64_t step = 0; step < 2; ++step) {
    compute(*of.program, step);
    auto sums = of.give();
    for (std::size_t bucket = 0; bucket < sums.size(); ++bucket)
      of.take(static_cast<int>(bucket), sums[bucket]);
    CHECK(of.held() > large_bytes / 4);
    CHECK(of.held() < large_bytes * 3 / 4);
    if (step == 1) {
      of.program->discard();
      CHECK(of.held() == 0);
      break;
    }
    of.program->reduce(0, {of.program->partial_for_reduction(0)});
    of.program->apply(step);
    CHECK(of.held() == 0);
  }
}

TEST_CASE("a weight's gradient is held until all pieces of it are read, whoever owns them") {
  // Of as many elements as both above.
  charged_program of(0, nn::Sequential(nn::Linear(200, 300), nn::ReLU(), nn::Linear(300, 3)));
  compute(*of.program, 0);
  auto sums = of.give();
  REQUIRE(sums.size() == 4);
  CHECK(of.is_own(2) != of.is_own(3));
  for (int last : {2, 3}) {
    CAPTURE(last);
    if (last > 2) {
      of.program->discard();
      compute(*of.program, 0);
      sums = of.give();
    }
    for (int bucket : {2, 3}) {
      CHECK(of.held() >= large_bytes);
      if (bucket != last) of.take(bucket, sums[static_cast<std::size_t>(bucket)]);
    }
    CHECK(of.held() >= large_bytes);
    of.take(last, sums[static_cast<std::size_t>(last)]);
    CHECK(of.held() < large_bytes / 3);
  }
}
