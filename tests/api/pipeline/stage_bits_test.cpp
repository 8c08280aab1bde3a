#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "api/pipeline/pipeline.hpp"
#include "support/bits.hpp"
#include "troupe/optim/sgd.hpp"

using troupe::testing::num_microbatches;
using troupe::testing::pipeline;
using troupe::testing::same_bits;

namespace {

constexpr std::uint64_t num_steps = 5;

struct outcome {
  std::vector<troupe::named_tensor> parameters;
  std::vector<troupe::program::step_metrics> metrics;
};

outcome train(pipeline model, const std::function<void(pipeline&, std::uint64_t step)>& do_step) {
  outcome result;
  for (std::uint64_t step = 0; step < num_steps; ++step) {
    do_step(model, step);
    model.apply(step);
    result.metrics.push_back(model.take_metrics());
  }
  result.parameters = model.parameters();
  return result;
}

/// All forwards, then all backwards.
void gpipe(pipeline& model, std::uint64_t step) {
  for (int index = 0; index < num_microbatches; ++index) model.forward(step, index);
  for (int index = 0; index < num_microbatches; ++index) model.backward(step, index);
}

/// Two forwards ahead, then one forward, one backward.
void one_forward_one_backward(pipeline& model, std::uint64_t step) {
  constexpr int warm_up = 2;
  for (int index = 0; index < num_microbatches + warm_up; ++index) {
    if (index < num_microbatches) model.forward(step, index);
    if (index >= warm_up) model.backward(step, index - warm_up);
  }
}

/// Input gradients as soon as they can be, all weight gradients at the end.
void deferred_weights(pipeline& model, std::uint64_t step) {
  for (int index = 0; index < num_microbatches; ++index) {
    model.forward(step, index);
    model.backward_input(step, index);
  }
  for (int index = 0; index < num_microbatches; ++index) model.backward_weight(step, index);
}

void check_same_outcome(const outcome& a, const outcome& b) {
  CHECK(same_bits(a.parameters, b.parameters));
  CHECK(a.metrics == b.metrics);
}

}  // namespace

TEST_CASE("weights and losses are the same bits for one to four stages") {
  auto expected = train(pipeline(1), gpipe);
  for (int stages : {2, 3, 4}) check_same_outcome(train(pipeline(stages), gpipe), expected);
}

TEST_CASE(
    "weights and losses are the same bits in GPipe order, 1F1B order and with weight gradients deferred") {
  auto expected = train(pipeline(4), gpipe);
  check_same_outcome(train(pipeline(4), one_forward_one_backward), expected);
  check_same_outcome(train(pipeline(4), deferred_weights), expected);
  check_same_outcome(train(pipeline(1), deferred_weights), expected);
}

TEST_CASE("weights and losses are the same bits for one to four stages with SGD and momentum") {
  auto sgd = troupe::optim::SGD({.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true});
  check_same_outcome(train(pipeline(4, sgd), one_forward_one_backward), train(pipeline(1, sgd), gpipe));
}

TEST_CASE("training changes every parameter") {
  auto initial = pipeline(4).parameters();
  auto trained = train(pipeline(4), gpipe).parameters;
  for (std::size_t i = 0; i < initial.size(); ++i) {
    CAPTURE(initial[i].name);
    CHECK_FALSE(same_bits(initial[i].value, trained[i].value));
  }
}
