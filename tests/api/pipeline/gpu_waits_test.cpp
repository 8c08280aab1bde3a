// For which results a stage on a GPU waits: emulated GPUs work at the latest moment, when somebody waits.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <string_view>

#include "api/pipeline/pipeline.hpp"
#include "support/bits.hpp"
#include "support/cuda_emulation/runtime/gpus.hpp"
#include "support/devices.hpp"
#include "troupe/nn/embedding.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Waits of any kind, as far as the project's code makes them.
std::size_t num_waits() {
  std::size_t count = 0;
  for (std::string_view function : {"cudaEventSynchronize", "cudaStreamSynchronize", "cudaDeviceSynchronize"})
    count += emulation::num_calls(function);
  return count;
}

template <class Run>
std::size_t waits_in(Run run) {
  auto before = num_waits();
  run();
  return num_waits() - before;
}

}  // namespace

TEST_CASE("no pass of a stage on a GPU waits for it, and the end of a step once for losses and for values") {
  for (const auto& numerics : {numeric_options{}, numeric_options{.clip_grad_norm = 0.01}}) {
    pipeline model(3, optim::Adam({.lr = 0.01}), four_layer_model(), numerics);
    model.train_step(0);  // checks of the first step wait
    model.take_metrics();
    synchronize(device_under_test());
    CHECK(waits_in([&] {
            for (int index = 0; index < num_microbatches; ++index) model.forward(1, index);
          }) == 0);
    CHECK(emulation::num_queued() > 0);
    CHECK(waits_in([&] {
            for (int index = 0; index < num_microbatches; ++index) model.backward(1, index);
          }) == 0);
    CHECK(emulation::num_queued() > 0);
    // Of three stages: whether gradients are finite, or their squares, and whether they are after clipping.
    // Of the last one: the losses. Once more for memory through which samples have come.
    CHECK(waits_in([&] { model.apply(1); }) <= (numerics.clip_grad_norm > 0 ? 2 * 3 + 2 : 2));
    CHECK(waits_in([&] { model.take_metrics(); }) <= 1);
  }
}

TEST_CASE(
    "labels and indices that are out of range are named with their step and microbatch, before the step is "
    "applied") {
  pipeline model(2);
  model.train_step(0);
  auto before = model.parameters();
  for (int index = 0; index < num_microbatches; ++index) {
    auto labels = make_labels(1, index);
    if (index == 2) labels.values<std::int64_t>()[3] = 17;
    model.forward(pipeline::which(1, index), make_images(1, index), labels);
  }
  for (int index = 0; index < num_microbatches; ++index) model.backward(1, index);
  CHECK_THROWS_WITH(model.at(1).non_finite(),
                    "step 1 microbatch 2: [cross_entropy] expected labels in [0, 3), got 17 at sample 3");
  CHECK(same_bits(model.parameters(), before));
  // What was left is forgotten with the step.
  for (auto& stage : model.stages) stage->discard();
  for (auto& stage : model.stages) CHECK(stage->non_finite().empty());
  model.train_step(1);
  CHECK_FALSE(same_bits(model.parameters(), before));
}

TEST_CASE("labels that were not checked when a step was discarded are not checked in the next try") {
  pipeline model(2);
  model.train_step(0);
  auto labels = make_labels(1, 0);
  labels.values<std::int64_t>()[3] = 17;
  model.forward(pipeline::which(1, 0), make_images(1, 0), labels);
  for (auto& stage : model.stages) stage->discard();
  CHECK_NOTHROW(model.train_step(1));
  for (auto& stage : model.stages) CHECK(stage->non_finite().empty());
}

TEST_CASE("a stage tells of an index that is out of range before its last outputs leave") {
  nn::Sequential model(nn::Embedding(num_classes, 6), nn::Linear(6, num_classes));
  auto make = programs_of(model, 2, {.optimizer = optim::Adam(), .seed = 42});
  auto first = make({.stage = 0});
  auto run = [&](std::uint64_t step, std::int64_t broken) {
    for (int index = 0; index < num_microbatches; ++index) {
      auto indices = make_labels(step, index);
      if (index == 1) indices.values<std::int64_t>()[4] = broken;
      first->forward(pipeline::which(step, index), {indices}, {});
    }
  };
  CHECK_THROWS_WITH(run(0, 99),
                    ContainsSubstring("step 0 microbatch 1: ") && ContainsSubstring("99 at position 4"));
  first->discard();
  CHECK_NOTHROW(run(1, 0));
}
