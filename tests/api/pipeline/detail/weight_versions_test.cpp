// PipeDream-2BW computes W(t+1) = W(t) - step(gradient of batch t at W(max(t-1, 0))), t counted from the last
// flush, whatever the stages and devices.
#include "troupe/pipeline/detail/weight_versions.hpp"
#include "api/pipeline/tested_programs.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>

#include "api/pipeline/pipeline.hpp"
#include "api/pipeline/planned_pipeline.hpp"
#include "support/bits.hpp"
#include "troupe/nn/dropout.hpp"
#include "troupe/nn/gpt.hpp"
#include "troupe/ops/rearrange.hpp"

using Catch::Matchers::ContainsSubstring;
using namespace troupe;
using namespace troupe::testing;

namespace {

/// Samples of one microbatch.
using sample_function = std::function<batch(std::uint64_t step, int index)>;

batch sample_images(std::uint64_t step, int index) {
  return {make_images(step, index), make_labels(step, index)};
}

constexpr std::int64_t num_tokens = 13, text_length = 5;

batch text_of(std::uint64_t step, int index) {
  auto tokens = [&](int ahead) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < 2 * text_length; ++i)
      all.push_back((i * i + 3 * (i + ahead) + index + static_cast<std::int64_t>(step)) % num_tokens);
    return tensor::from(all, {2, text_length});
  };
  return {tokens(0), tokens(1)};
}

struct training {
  nn::Graph model = four_layer_model();
  sample_function samples = sample_images;
  numeric_options numerics = {};
  int num_microbatches = 2;
  int flush_every = 1;
  std::uint64_t num_flushes = 2;
};

std::vector<named_tensor> planned(const training& job, int stages, int devices) {
  planned_pipeline pipeline(job.model, {.partition = partition_into_stages(job.model, stages),
                                        .kind = schedule_kind::pipedream_2bw,
                                        .num_microbatches = job.num_microbatches,
                                        .num_devices = devices,
                                        .numerics = job.numerics,
                                        .flush_every = job.flush_every});
  for (std::uint64_t run = 0; run < job.num_flushes; ++run) {
    std::vector<tensor> inputs, targets;
    for (int step = 0; step < job.flush_every; ++step)
      for (int index = 0; index < job.num_microbatches; ++index) {
        auto part = job.samples(
            run * static_cast<std::uint64_t>(job.flush_every) + static_cast<std::uint64_t>(step), index);
        inputs.push_back(part.inputs);
        targets.push_back(part.targets);
      }
    pipeline.train(run, {concat(inputs, 0), concat(targets, 0)});
  }
  return pipeline.weights();
}

/// The recurrence, written down: `values` are the live weights, `step(t, microbatch)` adds gradients, `apply`
/// steps.
template <class Backward, class Apply, class Changed>
void recurrence(const training& job, const std::vector<tensor>& values, Backward backward, Apply apply,
                Changed changed) {
  auto write = [&](const std::vector<tensor>& version) {
    for (std::size_t i = 0; i < values.size(); ++i) tensor(values[i]).copy_from(version[i]);
    changed();
  };
  auto kept = [&] {
    std::vector<tensor> copies;
    for (const auto& each : values) copies.push_back(each.clone());
    return copies;
  };
  for (std::uint64_t run = 0; run < job.num_flushes; ++run) {
    std::vector<std::vector<tensor>> versions = {kept()};
    for (std::size_t t = 0; t < static_cast<std::size_t>(job.flush_every); ++t) {
      auto step = run * static_cast<std::uint64_t>(job.flush_every) + t;
      write(versions[t < 2 ? 0 : t - 1]);
      for (int index = 0; index < job.num_microbatches; ++index) backward(step, index);
      write(versions[t]);
      apply(step);
      versions.push_back(kept());
    }
  }
}

/// With modules and an optimizer alone.
std::vector<named_tensor> plain(const training& job) {
  auto model = job.model;
  model.materialize(42);
  model.to(device_under_test());
  auto parameters = model.named_parameters();
  auto optimizer = optim::Adam({.lr = 0.01})(parameters);
  std::vector<tensor> values;
  for (const auto& each : parameters) values.push_back(each.target->value());
  recurrence(
      job, values,
      [&](std::uint64_t step, int index) {
        auto part = job.samples(step, index);
        auto scale = 1.0 / static_cast<double>(part.targets.num_elements() * job.num_microbatches);
        nn::CrossEntropy()(model({placed(part.inputs)}), placed(part.targets), scale).loss.backward();
      },
      [&](std::uint64_t step) { optimizer->apply(step); },
      [&] {
        for (const auto& each : parameters) each.target->mark_changed();
      });
  auto all = model.state_dict();
  std::ranges::sort(all, {}, &named_tensor::name);
  return all;
}

/// With the program of a single stage that knows one version: clipping, loss scales, tied weights and
/// dropout.
std::vector<named_tensor> one_stage(const training& job) {
  auto make = testing::programs_of(
      job.model, 1, {.optimizer = optim::Adam({.lr = 0.01}), .seed = 42, .numerics = job.numerics});
  auto program = make({.stage = 0});
  auto reductions =
      detail::reductions_of(job.model, partition_into_stages(job.model, 1), job.numerics).all.size();
  std::vector<tensor> values;
  for (const auto& each : program->parameters()) values.push_back(each.value);
  recurrence(
      job, values,
      [&](std::uint64_t step, int index) {
        program::microbatch which{.step = step, .index = index, .count = job.num_microbatches};
        auto part = job.samples(step, index);
        program->forward(which, {part.inputs}, part.targets);
        program->backward_input(which, {});
        program->backward_weight(which);
      },
      [&](std::uint64_t step) {
        for (int number = 0; number < static_cast<int>(reductions); ++number)
          program->reduce(number, {program->partial_for_reduction(number)});
        program->apply(step);
      },
      [&] { program->load_state(program->state()); });
  return program->weights();
}

}  // namespace

TEST_CASE("the weights are those of the delayed gradients' recurrence, with any stages and devices") {
  for (int microbatches : {1, 2, 3, 4})
    for (int flush_every : {1, 2, 4}) {
      training job{.num_microbatches = microbatches, .flush_every = flush_every};
      auto expected = plain(job);
      for (int stages : {1, 2, 4})
        for (int devices = 1; devices <= stages; ++devices) {
          CAPTURE(microbatches, flush_every, stages, devices);
          REQUIRE(same_bits(planned(job, stages, devices), expected));
        }
      REQUIRE(same_bits(one_stage(job), expected));
    }
}

TEST_CASE("with one step between flushes the weights are those of 1F1B, with more they are others") {
  training job{.num_microbatches = 2, .flush_every = 1, .num_flushes = 4};
  planned_pipeline synchronous(job.model, {.partition = partition_into_stages(job.model, 2),
                                           .kind = schedule_kind::one_f_one_b,
                                           .num_microbatches = 2,
                                           .num_devices = 2});
  for (std::uint64_t step = 0; step < 4; ++step) {
    auto first = sample_images(step, 0), second = sample_images(step, 1);
    synchronous.train(step, {concat(std::vector{first.inputs, second.inputs}, 0),
                             concat(std::vector{first.targets, second.targets}, 0)});
  }
  CHECK(same_bits(planned(job, 2, 2), synchronous.weights()));
  CHECK_FALSE(same_bits(planned({.num_microbatches = 2, .flush_every = 4, .num_flushes = 1}, 2, 2),
                        synchronous.weights()));
}

TEST_CASE(
    "clipping, a loss scale that skips steps, tied weights and dropout take part, with delayed gradients") {
  auto gpt = nn::gpt_layers(
      {.vocabulary = num_tokens, .context = text_length, .features = 8, .num_layers = 3, .num_heads = 2});
  auto dropped = nn::Sequential(nn::ToFloat(), nn::Flatten(), nn::Linear(12, 17), nn::Dropout(0.3),
                                nn::ReLU(), nn::Linear(17, 9), nn::Dropout(0.2), nn::Linear(9, num_classes));
  numeric_options clipped{.clip_grad_norm = 0.1};
  numeric_options scaled{
      .precision = dtype::f16, .clip_grad_norm = 0.5, .loss_scale = {.initial_scale = 268435456}};
  for (const auto& numerics : {numeric_options{}, numeric_options{.precision = dtype::bf16}, clipped, scaled})
    for (const auto& [model, samples] : {std::pair<nn::Graph, sample_function>(gpt, text_of),
                                         std::pair<nn::Graph, sample_function>(dropped, sample_images)}) {
      training job{model, samples, numerics, 3, 4, 2};
      auto expected = one_stage(job);
      for (auto [stages, devices] : {std::pair(1, 1), std::pair(3, 2), std::pair(3, 3)}) {
        bool is_plain = numerics.clip_grad_norm == 0;  // emulated GPUs take a second for each
        if (device_under_test() != device() && (stages == devices || is_plain)) continue;
        CAPTURE(numerics.precision, numerics.clip_grad_norm, stages, devices, model.size());
        REQUIRE(same_bits(planned(job, stages, devices), expected));
      }
    }
}

TEST_CASE("a program that keeps one version refuses microbatches with a delay") {
  auto program = testing::programs_of(four_layer_model(), 1, {.optimizer = optim::Adam()})({.stage = 0});
  program::microbatch late{.step = 1, .delay = 1};
  CHECK_THROWS_WITH(program->forward(late, {make_images(1, 0)}, make_labels(1, 0)),
                    ContainsSubstring("module_program_options::flush_every"));
}

TEST_CASE("a version of the weights that is not kept is refused") {
  auto program = testing::programs_of(four_layer_model(), 1,
                                      {.optimizer = optim::Adam(), .flush_every = 8})({.stage = 0});
  auto run = [&](const program::microbatch& which) {
    program->forward(which, {make_images(which.step, 0)}, make_labels(which.step, 0));
    program->backward_input(which, {});
    program->backward_weight(which);
    program->apply(which.step);
  };
  run({.step = 0});
  run({.step = 1, .delay = 1});
  CHECK_THROWS_WITH(run({.step = 1, .delay = 1}), ContainsSubstring("check_plan"));
  // What a restore does: the newest version is the only one.
  program->discard();
  program->load_state(program->state());
  CHECK_NOTHROW(run({.step = 8}));
}
