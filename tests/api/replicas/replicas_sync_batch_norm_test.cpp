// SyncBatchNorm in the replicas of a pipeline: statistics of all replicas, the same bits for any partition
// and placement, and what is told where replicas do not run it alike.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>

#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "troupe/data/detail/training_source.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

job_options synchronized_options(std::uint64_t steps) {
  auto options = small_options();
  options.batch = 48;
  options.steps = steps;
  return options;
}

/// Two of the layers normalise: within one stage or in two.
nn::Sequential synchronized_model() {
  nn::Sequential model(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4), nn::Conv2d(4, 4, 1),
                       nn::BatchNorm2d(4), nn::Flatten(), nn::ReLU(), nn::Linear(16, 4));
  CHECK(convert_sync_batch_norm(model) == 2);
  return model;
}

Pipeline synchronized_pipeline(const nn::Sequential& model, int stages, int replicas, int microbatches = 2) {
  return Pipeline(model)
      .stages(stages)
      .microbatches(microbatches)
      .replicas(replicas)
      .optimizer(optim::SGD({.lr = 0.1}));
}

struct synchronized_training {
  std::vector<double> losses;
  std::vector<named_tensor> weights;
  evaluation_result evaluated;
};

synchronized_training train_synchronized(int num_devices, Pipeline pipeline, std::uint64_t steps = 6) {
  synchronized_training seen;
  auto samples = four_corners(250);
  Trainer trainer(World::local(num_devices, synchronized_options(steps)), std::move(pipeline),
                  {.on_step = [&](const step_event& done) { seen.losses.push_back(done.loss); }});
  trainer.fit(samples);
  seen.weights = trainer.state_dict();
  seen.evaluated = trainer.evaluate(samples);
  return seen;
}

/// Normalises only where the first number that comes in is positive.
class sometimes_normed : public nn::module_of<sometimes_normed> {
 public:
  variable forward(const variable& input) override {
    return input.value.values<float>()[0] > 0 ? norm.forward(input) : input;
  }
  void each_child(const child_visitor& visit) override { visit("norm", norm); }
  nn::SyncBatchNorm norm{4};
};

}  // namespace

TEST_CASE("replicas with SyncBatchNorm have the same bits with any partition, schedule and placement") {
  for (int replicas : {2, 3}) {
    auto expected = train_synchronized(1, synchronized_pipeline(synchronized_model(), 1, replicas));
    for (int stages : {1, 2, 4})
      for (auto kind : {schedule_kind::one_f_one_b, schedule_kind::gpipe, schedule_kind::zb_h1}) {
        CAPTURE(replicas, stages, to_string(kind));
        auto seen = train_synchronized(
            replicas * stages, synchronized_pipeline(synchronized_model(), stages, replicas).schedule(kind));
        CHECK(seen.losses == expected.losses);
        CHECK(same_bits(seen.weights, expected.weights));
        CHECK(seen.evaluated.loss == expected.evaluated.loss);
      }
  }
}

TEST_CASE("replicas with SyncBatchNorm learn nearly what one replica learns of all samples") {
  auto together = train_synchronized(4, synchronized_pipeline(synchronized_model(), 2, 2, 1));
  auto alone = train_synchronized(1, synchronized_pipeline(synchronized_model(), 1, 1, 1));
  auto apart = train_synchronized(
      1, synchronized_pipeline(nn::Sequential(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4),
                                              nn::Conv2d(4, 4, 1), nn::BatchNorm2d(4), nn::Flatten(),
                                              nn::ReLU(), nn::Linear(16, 4)),
                               1, 2, 1));
  REQUIRE(together.losses.size() == alone.losses.size());
  for (std::size_t step = 0; step < alone.losses.size(); ++step) {
    CHECK_THAT(together.losses[step], Catch::Matchers::WithinRel(alone.losses[step], 1e-4));
    CHECK(std::abs(apart.losses[step] - alone.losses[step]) > 1e-4);
  }
  REQUIRE(together.weights.size() == alone.weights.size());
  for (std::size_t i = 0; i < alone.weights.size(); ++i)
    for (std::int64_t at = 0; at < alone.weights[i].value.num_elements(); ++at) {
      auto index = static_cast<std::size_t>(at);
      CHECK_THAT(together.weights[i].value.values<float>()[index],
                 Catch::Matchers::WithinAbs(alone.weights[i].value.values<float>()[index], 1e-3));
    }
}

TEST_CASE("a SyncBatchNorm within a checkpoint has the bits of one without, and moves its means once") {
  auto with = [](bool is_checkpointed) {
    nn::Sequential normed(nn::Conv2d(4, 4, 1), nn::SyncBatchNorm(4));
    nn::Sequential model(nn::Linear(2, 16), nn::Reshape({4, 2, 2}));
    is_checkpointed ? model.push_back(nn::Checkpoint(normed)) : model.push_back(normed);
    model.push_back(nn::Flatten());
    model.push_back(nn::Linear(16, 4));
    return train_synchronized(2, synchronized_pipeline(model, 1, 2));
  };
  auto plain = with(false), recomputed = with(true);
  CHECK(plain.losses == recomputed.losses);
  REQUIRE(plain.weights.size() == recomputed.weights.size());
  for (std::size_t i = 0; i < plain.weights.size(); ++i)
    CHECK(same_bits(plain.weights[i].value, recomputed.weights[i].value));
}

TEST_CASE("f16 with clipping, averaged weights and steps between flushes have the same bits anywhere") {
  auto varied = [](int which, Pipeline pipeline) {
    if (which == 0) pipeline.precision(dtype::f16).clip_grad_norm(0.5);
    if (which == 1) pipeline.average_every(3);
    if (which == 2) pipeline.schedule(schedule_kind::pipedream_2bw).flush_every(3);
    return pipeline;
  };
  for (int which : {0, 1, 2}) {
    auto expected = train_synchronized(1, varied(which, synchronized_pipeline(synchronized_model(), 1, 2)));
    auto seen = train_synchronized(4, varied(which, synchronized_pipeline(synchronized_model(), 2, 2)));
    CAPTURE(which);
    CHECK(seen.losses == expected.losses);
    CHECK(same_bits(seen.weights, expected.weights));
  }
}

TEST_CASE("steps of one's own run a SyncBatchNorm over the replicas too") {
  auto source = detail::make_training_source(four_corners(250), {48, 2, small_options().seed, 1, 2});
  Trainer trainer(World::local(4, synchronized_options(6)),
                  synchronized_pipeline(synchronized_model(), 2, 2));
  for (std::uint64_t step = 0; step < 6; ++step) {
    trainer.forward_backward(source->at(step));
    trainer.optimizer_step();
  }
  CHECK(same_bits(trainer.state_dict(),
                  train_synchronized(4, synchronized_pipeline(synchronized_model(), 2, 2)).weights));
}

TEST_CASE("replicas of which only some come to a SyncBatchNorm end the job and are told so") {
  auto samples = four_corners(250);
  nn::Sequential model(nn::Reshape({2, 1, 1}), nn::Conv2d(2, 4, 1), sometimes_normed(), nn::Flatten(),
                       nn::Linear(4, 4));
  Trainer trainer(World::local(2, synchronized_options(20)), synchronized_pipeline(model, 1, 2));
  CHECK_THROWS_MATCHES(trainer.fit(samples), std::exception,
                       MessageMatches(ContainsSubstring("all replicas must run the same modules") &&
                                      ContainsSubstring("SyncBatchNorm")));
}

TEST_CASE("a SyncBatchNorm over a process group is refused in the replicas of a pipeline") {
  nn::BatchNorm2d over_group(4);
  over_group.synchronize_statistics([](const auto&) {});
  nn::Sequential model(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), over_group, nn::Flatten(),
                       nn::Linear(16, 4));
  CHECK_THROWS_MATCHES(Trainer(World::local(1, synchronized_options(2)), synchronized_pipeline(model, 1, 2)),
                       bad_input,
                       MessageMatches(ContainsSubstring("SyncBatchNorm over a process group") &&
                                      ContainsSubstring("convert_sync_batch_norm(model)")));
}
