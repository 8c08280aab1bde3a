#include <catch2/catch_test_macros.hpp>

#include "api/pipeline/pipeline.hpp"
#include "troupe/optim/sgd.hpp"

using troupe::optim::Optimizer;
using troupe::testing::num_microbatches;
using troupe::testing::pipeline;

namespace {

/// The metrics of the last of `num_steps` steps over the same samples.
troupe::program::step_metrics fit(const Optimizer& optimizer, int num_steps) {
  pipeline model(4, optimizer);
  troupe::program::step_metrics last;
  for (std::uint64_t step = 0; step < static_cast<std::uint64_t>(num_steps); ++step) {
    for (int index = 0; index < num_microbatches; ++index) {
      auto mb = pipeline::which(step, index);
      model.forward(mb, troupe::testing::make_images(0, index), troupe::testing::make_labels(0, index));
      model.backward(step, index);
    }
    model.apply(step);
    last = model.take_metrics();
  }
  return last;
}

void check_learns(const Optimizer& optimizer) {
  CHECK(fit(optimizer, 1).mean_loss() > 1);
  auto learned = fit(optimizer, 400);
  CHECK(learned.mean_loss() < 0.05);
  CHECK(learned.accuracy() == 1);
}

}  // namespace

TEST_CASE("a small network overfits its samples") {
  check_learns(troupe::optim::Adam({.lr = 0.01}));
  check_learns(troupe::optim::AdamW({.lr = 0.01}));
  check_learns(troupe::optim::SGD({.lr = 0.1, .momentum = 0.9}));
}
