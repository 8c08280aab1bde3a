// A stage whose replicas free the gradients that others have read: shard_strategy::grad.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <memory>
#include <vector>

#include "api/pipeline/replica_steps.hpp"
#include "api/pipeline/tested_programs.hpp"
#include "support/bits.hpp"
#include "support/devices.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/nn/tied_linear.hpp"
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
  explicit charged_program(double clip_grad_norm = 0, const nn::Sequential& model = two_large_weights(),
                           dtype sync = dtype::f32) {
    detail::module_program_options options{.optimizer = optim::Adam(), .seed = 7, .num_shards = 2};
    options.numerics.shard = shard_strategy::grad;
    options.numerics.clip_grad_norm = clip_grad_norm;
    options.numerics.exchange.gradient_sync = sync;
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
  /// The owners have read all buckets.
  void note_all_read() {
    for (int bucket = 0; bucket < program->num_buckets(layout::mesh_axis::dp, 0); ++bucket)
      program->note_read(layout::mesh_axis::dp, bucket);
  }
  /// As if the other replica had no gradient.
  void take_own(const std::vector<tensor>& sums) {
    for (std::size_t bucket = 0; bucket < sums.size(); ++bucket)
      if (is_own(static_cast<int>(bucket)))
        program->take_sums(layout::mesh_axis::dp, static_cast<int>(bucket), {sums[bucket]});
  }

  memory_account account = memory_account::make();
  account_scope charged{account};
  std::unique_ptr<program::stage_program> program;
};

/// Its second weight is of no use.
class partly_used : public nn::module_of<partly_used> {
 public:
  variable forward(const variable& input) override { return used_(input); }
  void each_child(const child_visitor& visit) override {
    visit("used", used_);
    visit("unused", unused_);
  }

 private:
  nn::Linear used_{200, 3}, unused_{200, 300};
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
    CHECK(of.held() >= large_bytes);
    of.note_all_read();
    CHECK(of.held() == 0);
    of.take_own(sums);
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
    of.note_all_read();
    of.take_own(sums);
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
      of.give();
    }
    for (int bucket : {2, 3}) {
      CHECK(of.held() >= large_bytes);
      if (bucket != last) of.program->note_read(layout::mesh_axis::dp, bucket);
    }
    CHECK(of.held() >= large_bytes);
    of.program->note_read(layout::mesh_axis::dp, last);
    CHECK(of.held() == 0);
  }
}

TEST_CASE("gradients that are sent rounded are copies, and go when these leave") {
  charged_program of(0, two_large_weights(), dtype::bf16);
  compute(*of.program, 0);
  CHECK(of.held() >= large_bytes);
  auto sums = of.give();
  CHECK(of.held() == 0);
  of.note_all_read();
  of.take_own(sums);
  of.program->apply(0);
  CHECK(of.held() == 0);
}

TEST_CASE("a weight that no pass reaches has no memory for its gradient") {
  charged_program of(0, nn::Sequential(partly_used()));
  auto before = copy_of_state(*of.program);
  compute(*of.program, 0);
  CHECK(of.held() < large_bytes / 3);
  auto sums = of.give();
  of.note_all_read();
  of.take_own(sums);
  of.program->apply(0);
  CHECK(of.held() == 0);
  auto after = of.program->state();
  REQUIRE(after.size() == before.size());
  int num_unused = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (!before[i].name.ends_with("unused.weight")) continue;
    CHECK(same_bits(after[i].value, before[i].value));
    ++num_unused;
  }
  CHECK(num_unused > 0);
}

TEST_CASE("of a tied weight the sum over its uses alone is held after the backward") {
  nn::Sequential model(nn::Linear(200, 200), nn::ReLU(), nn::TiedLinear(200, 200, "0.weight"), nn::ReLU(),
                       nn::Linear(200, 3));
  charged_program of(0, model);
  compute(*of.program, 0);
  constexpr auto weight_bytes = sizeof(float) * 200 * 200;
  CHECK(of.held() >= weight_bytes);
  CHECK(of.held() < weight_bytes * 3 / 2);
  auto sums = of.give();
  of.note_all_read();
  CHECK(of.held() == 0);
  of.take_own(sums);
  of.program->apply(0);
  CHECK(of.held() == 0);
}

TEST_CASE("gradients come from memory that is shared, whatever it holds, until it is withdrawn") {
  charged_program shared, own;
  int num_taken = 0;
  auto source = [&num_taken](const shape& extents, dtype type) {
    ++num_taken;
    REQUIRE(type == dtype::f32);
    return tensor::full(extents, std::numeric_limits<float>::quiet_NaN());
  };
  for (std::uint64_t step = 0; step < 4; ++step) {
    CAPTURE(step);
    if (step == 0) shared.program->share_gradients(source);
    if (step == 3) shared.program->share_gradients(nullptr);
    for (auto* each : {&shared, &own}) {
      compute(*each->program, step);
      auto sums = each->give();
      each->note_all_read();
      each->take_own(sums);
      each->program->apply(step);
    }
    auto num_steps = device_under_test() == device() ? std::min(static_cast<int>(step) + 1, 3) : 0;
    CHECK(num_taken == 2 * num_steps);  // a GPU's gradients stay there
    check_same(*own.program, *shared.program);
  }
}
