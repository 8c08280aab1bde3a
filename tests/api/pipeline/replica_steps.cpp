#include "replica_steps.hpp"
#include "api/pipeline/tested_programs.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <utility>

#include "support/bits.hpp"
#include "troupe/nn/activation.hpp"
#include "troupe/nn/linear.hpp"
#include "troupe/nn/sequential.hpp"
#include "troupe/optim/adam.hpp"
#include "troupe/pipeline/detail/module_program.hpp"
#include "troupe/random/fill.hpp"

namespace troupe::testing {
namespace {

/// An optimizer that says nothing of its elements, so that it steps when all gradients are there.
class undivided : public optim::optimizer_state {
 public:
  explicit undivided(std::unique_ptr<optim::optimizer_state> of) : of_(std::move(of)) {}
  void apply(std::uint64_t step) override { of_->apply(step); }
  std::vector<named_tensor> state() const override { return of_->state(); }

 private:
  std::unique_ptr<optim::optimizer_state> of_;
};

}  // namespace

std::unique_ptr<program::stage_program> program_with(optim::Optimizer optimizer,
                                                     const numeric_options& numerics) {
  nn::Sequential model(nn::Linear(200, 150), nn::ReLU(), nn::Linear(150, 200), nn::ReLU(),
                       nn::Linear(200, 3));
  return programs_of(model, 1,
                     {.optimizer = std::move(optimizer), .seed = 7, .numerics = numerics})({.stage = 0});
}

optim::Optimizer whole_adam() {
  return [](std::vector<named_parameter> parameters) -> std::unique_ptr<optim::optimizer_state> {
    return std::make_unique<undivided>(optim::Adam()(std::move(parameters)));
  };
}

std::vector<int> compute(program::stage_program& program, std::uint64_t step, bool in_one,
                         const std::function<void(int)>& on_bucket) {
  program::microbatch which{.step = step, .num_replicas = 2};
  auto inputs = tensor::empty({4, 200});
  fill_uniform(inputs, -1, 1, step, "inputs");
  program.forward(which, {inputs}, tensor::from(std::vector<std::int64_t>{0, 1, 2, 1}, {4}));
  std::vector<int> given;
  auto give = [&](int bucket) {
    given.push_back(bucket);
    if (on_bucket) on_bucket(bucket);
  };
  if (in_one) {
    program.backward_last(
        which, {}, [](const std::vector<tensor>& gradients) { CHECK(gradients.empty()); }, give);
  } else {
    program.backward_input(which, {});
    program.backward_last_weight(which, give);
  }
  return given;
}

void take_sums(program::stage_program& program, int broken) {
  std::vector<tensor> sums;
  for (int bucket = 0; bucket < program.num_buckets(layout::mesh_axis::dp, 0); ++bucket) {
    auto& sum = sums.emplace_back(program.bucket(layout::mesh_axis::dp, bucket).to({}).clone());
    for (float& each : sum.values<float>()) each *= 2;
    if (bucket == broken) sum.values<float>()[0] = std::numeric_limits<float>::quiet_NaN();
  }
  for (auto bucket = sums.size(); bucket-- > 0;) {
    auto count = sums[bucket].num_elements(), half = count / 3;
    program.take_sums(layout::mesh_axis::dp, static_cast<int>(bucket),
                      {sums[bucket].rows(0, half), sums[bucket].rows(half, count - half)});
  }
}

void check_same(program::stage_program& one, program::stage_program& other) {
  auto expected = one.state(), found = other.state();
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(expected[i].name);
    CHECK(same_bits(found[i].value, expected[i].value));
  }
}

std::vector<named_tensor> copy_of_state(program::stage_program& program) {
  std::vector<named_tensor> copies;
  for (const auto& each : program.state()) copies.push_back({each.name, each.value.clone()});
  return copies;
}

void check_discarded(program::stage_program& program, const std::vector<named_tensor>& saved) {
  program.discard();
  program.load_state(saved);
  program.take_metrics();
  auto expected = program_with(optim::Adam());
  for (auto* each : {&program, expected.get()}) {
    compute(*each, 0);
    take_sums(*each);
    each->apply(0);
  }
  check_same(*expected, program);
}

}  // namespace troupe::testing
