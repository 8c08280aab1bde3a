// Trainers whose pipeline is flushed after several steps.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <stdexcept>

#include "package/synthetic.hpp"
#include "support/bits.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Its norm's running means are those of the forwards in order.
Pipeline flushed_pipeline(int stages, int flush_every) {
  nn::Sequential model(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4), nn::Flatten(),
                       nn::ReLU(), nn::Linear(16, 16), nn::ReLU(), nn::Linear(16, 4));
  return Pipeline(model)
      .stages(stages)
      .microbatches(4)
      .schedule(schedule_kind::pipedream_2bw)
      .flush_every(flush_every)
      .optimizer(optim::Adam({.lr = 0.01}));
}

/// Seven batches of 32 an epoch, so that some flushes are in the middle of one.
dataset_ptr few_samples() { return four_corners(250); }

job_options flushed_options(std::uint64_t steps) {
  auto options = small_options();
  options.steps = steps;
  options.epochs = 4;
  return options;
}

struct flushed_outcome {
  std::vector<std::uint64_t> steps = {};
  std::vector<named_tensor> weights = {};
  tensor predictions = {};
  double accuracy = 0;
};

flushed_outcome trained_with_flushes(int stages, int flush_every) {
  flushed_outcome seen;
  Trainer trainer(World::local(stages, flushed_options(6)), flushed_pipeline(stages, flush_every),
                  {.on_step = [&](const step_event& done) { seen.steps.push_back(done.step); }});
  CHECK(trainer.fit(few_samples()).steps == 6);
  trainer.evaluate(few_samples());  // between two calls of fit
  CHECK(trainer.fit(few_samples()).steps == 12);
  seen.weights = trainer.state_dict();
  seen.predictions = trainer.predict(few_samples());
  seen.accuracy = trainer.evaluate(few_samples()).accuracy;
  return seen;
}

}  // namespace

TEST_CASE("with flushes after some steps, calls see whole flushes, and the bits depend on no partition") {
  auto whole = trained_with_flushes(1, 3);
  CHECK(whole.steps == std::vector<std::uint64_t>{3, 6, 9, 12});
  for (int stages : {2, 3}) {
    auto cut = trained_with_flushes(stages, 3);
    CHECK(cut.steps == whole.steps);
    CHECK(same_bits(cut.weights, whole.weights));
    CHECK(same_bits(cut.predictions, whole.predictions));
    CHECK(cut.accuracy == whole.accuracy);
  }
  CHECK_FALSE(same_bits(trained_with_flushes(2, 2).weights, whole.weights));
}

TEST_CASE("steps that do not end at a flush, and flushes that a schedule does not have, are refused") {
  Trainer trainer(World::local(2, flushed_options(7)), flushed_pipeline(2, 3));
  CHECK_THROWS_MATCHES(trainer.fit(few_samples()), bad_input,
                       MessageMatches(ContainsSubstring("7 steps are no multiple of --flush-every 3") &&
                                      ContainsSubstring("--steps 6 or 9")));
  CHECK_THROWS_MATCHES(
      Trainer(World::local(2, flushed_options(6)), flushed_pipeline(2, 3).schedule(schedule_kind::gpipe)),
      bad_input, MessageMatches(ContainsSubstring("gpipe flushes after every optimizer step, not after 3")));
  CHECK_THROWS_AS(flushed_pipeline(2, 0), bad_input);
}

TEST_CASE("a device map takes nothing away from flushes") {
  auto hash_with = [](Pipeline pipeline) {
    Trainer trainer(World::local(2, flushed_options(6)), std::move(pipeline));
    trainer.fit(few_samples());
    return trainer.weights_sha256();
  };
  auto map = DeviceMap().layers("0..5", 1).layers("5..8", 0);
  CHECK(hash_with(flushed_pipeline(0, 3).device_map(map)) == hash_with(flushed_pipeline(2, 3)));
}

TEST_CASE("steps of one's own are refused with a pipeline that is flushed after several") {
  auto world = World::local(2, flushed_options(4));
  Trainer trainer(world, flushed_pipeline(2, 2));
  CHECK_THROWS_MATCHES(trainer.forward_backward({}), std::logic_error,
                       MessageMatches(ContainsSubstring("flush_every(2)") && ContainsSubstring("Use fit")));
}
