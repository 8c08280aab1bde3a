// Replicas of a pipeline in one process: the bits of a plain loop that adds up the replicas' gradients in the
// tree, whatever the partition; what reads and what refuses them.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <limits>

#include "api/replicas/replica_training.hpp"
#include "support/bits.hpp"
#include "support/models/conditional_model.hpp"
#include "support/temp_folder.hpp"
#include "troupe/data/detail/training_source.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/snapshot/snapshot_store.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

TEST_CASE("replicas have the bits of a plain loop that sums their gradients in the tree") {
  constexpr int batch = 48;  // for 3 replicas too: sums of 2, 4 and 8 have the same bits in reverse
  for (int replicas : {2, 3, 4, 8}) {
    auto expected = plain_loop(replicas, batch);
    for (int stages : {1, 3}) {
      CAPTURE(replicas, stages);
      CHECK(train(1, replicated(stages, replicas), 6, batch) == expected);
      CHECK(train(stages * replicas, replicated(stages, replicas), 6, batch) == expected);
    }
  }
  // The sum has another order than that of one replica.
  CHECK_FALSE(train(1, replicated(1, 1).microbatches(8)) == plain_loop(4));
}

TEST_CASE("a weight that some microbatches, some replicas or none use learns from those that do") {
  auto with = [](int stages, int replicas) { return replicated(stages, replicas, conditional_model()); };
  for (int replicas : {2, 3}) {
    CAPTURE(replicas);
    auto expected = plain_loop(replicas, 48, dtype::f32, conditional_model());
    CHECK(train(1, with(1, replicas), 6, 48) == expected);
    CHECK(train(2 * replicas, with(2, replicas).schedule(schedule_kind::zb_h1), 6, 48) == expected);
    auto in_16_bits = plain_loop(replicas, 48, dtype::bf16, conditional_model());
    CHECK(train(replicas, with(2, replicas).gradient_sync(dtype::bf16), 6, 48) == in_16_bits);
    for (const auto& change : std::vector<std::function<Pipeline&(Pipeline&)>>{
             [](Pipeline& of) -> Pipeline& { return of.clip_grad_norm(0.05); },
             [](Pipeline& of) -> Pipeline& { return of.top_k_gradients(0.05); },
             [](Pipeline& of) -> Pipeline& { return of.power_sgd_rank(2); },
             [](Pipeline& of) -> Pipeline& { return of.average_every(3); }}) {
      auto whole = with(1, replicas), cut = with(2, replicas);
      auto changed = train(1, change(whole), 6, 48);
      CHECK_FALSE(changed == expected);
      CHECK(train(2 * replicas, change(cut), 6, 48) == changed);
    }
  }
  // What no replica uses stays as it was.
  std::vector<named_tensor> weights;
  for (std::uint64_t steps : {0, 4}) {
    Trainer trainer(World::local(2, options_of(4)), with(1, 2));
    if (steps > 0) trainer.fit(points());
    for (const auto& each : trainer.state_dict())
      if (each.name == "1.unused.weight") weights.push_back(each);
  }
  REQUIRE(weights.size() == 2);
  CHECK(same_bits(weights[0].value, weights[1].value));
}

TEST_CASE("clipping, tied weights, dropout and f16 have the same bits with any partition of replicas") {
  auto bits_of = [](int stages, int devices) {
    auto gpt = nn::gpt_layers(
        {.vocabulary = 16, .context = 4, .features = 8, .num_layers = 2, .num_heads = 2, .dropout = 0.2});
    std::vector<std::int64_t> tokens;
    for (std::int64_t i = 0; i < 96 * 4; ++i) tokens.push_back(i * i % 16);
    auto samples = std::make_shared<dataset>(
        labelled_samples{tensor::from(tokens, {96, 4}), tensor::from(tokens, {96, 4})});
    auto pipeline = Pipeline(gpt)
                        .stages(stages)
                        .microbatches(2)
                        .replicas(2)
                        .precision(dtype::f16)
                        .clip_grad_norm(0.5)
                        .loss_scale({.initial_scale = 1 << 28})
                        .optimizer(optim::Adam({.lr = 0.01}));
    trained_bits seen;
    Trainer trainer(World::local(devices, options_of(12)), std::move(pipeline),
                    {.on_step = [&](const step_event& done) {
                      seen.losses.push_back(std::bit_cast<std::uint64_t>(done.loss));
                    }});
    trainer.fit(samples);
    seen.weights = trainer.weights_sha256();
    return seen;
  };
  auto expected = bits_of(1, 1);
  CHECK(bits_of(2, 1) == expected);
  CHECK(bits_of(3, 6) == expected);
}

TEST_CASE("several steps between two flushes have the same bits with any partition of replicas") {
  auto flushed = [](int stages, int devices) {
    return train(devices, replicated(stages, 2).schedule(schedule_kind::pipedream_2bw).flush_every(3));
  };
  auto expected = flushed(1, 1);
  CHECK(flushed(3, 6) == expected);
  CHECK(flushed(3, 2) == expected);
}

TEST_CASE("replicas keep running means of their own, and evaluations use those of replica 0") {
  nn::Sequential model(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4), nn::Flatten(),
                       nn::ReLU(), nn::Linear(16, 4));
  std::vector<named_tensor> whole;
  for (int stages : {1, 2}) {
    Trainer trainer(World::local(2 * stages, options_of(8)), replicated(stages, 2, model));
    trainer.fit(points());
    auto weights = trainer.state_dict();
    if (whole.empty()) whole = weights;
    CHECK(same_bits(weights, whole));
    auto outputs = trainer.predict(points());
    auto evaluated = trainer.evaluate(points());
    CHECK(evaluated.num_samples == 250);
    Trainer alone_in(World::local(1, options_of(8)),
                     Pipeline(model).stages(1).microbatches(2).initial_weights(weights));
    CHECK(same_bits(alone_in.predict(points()), outputs));
    CHECK(alone_in.evaluate(points()).loss == evaluated.loss);
  }
}

TEST_CASE("equal replicas share the batches of an evaluation, which has the bits of one replica's") {
  for (int num_samples : {250, 97, 31}) {
    CAPTURE(num_samples);
    auto samples = four_corners(num_samples);
    Trainer alone(World::local(1, options_of(4, 48)), replicated(2, 1));
    auto expected = alone.evaluate(samples);
    auto outputs = alone.predict(samples);
    for (int replicas : {2, 3})
      for (int devices : {1, 2 * replicas}) {
        CAPTURE(replicas, devices);
        Trainer trainer(World::local(devices, options_of(4, 48)), replicated(2, replicas));
        auto found = trainer.evaluate(samples);
        CHECK(found.num_samples == num_samples);
        CHECK(found.accuracy == expected.accuracy);
        CHECK(std::bit_cast<std::uint64_t>(found.loss) == std::bit_cast<std::uint64_t>(expected.loss));
        CHECK(same_bits(trainer.predict(samples), outputs));
      }
  }
}

TEST_CASE("steps of one's own have the bits of fit with replicas") {
  auto source = detail::make_training_source(points(), {32, 2, small_options().seed, 1, 2});
  Trainer trainer(World::local(4, options_of(6)), replicated(2, 2));
  for (std::uint64_t step = 0; step < 6; ++step) {
    trainer.forward_backward(source->at(step));
    trainer.optimizer_step();
  }
  CHECK(trainer.weights_sha256() == train(4, replicated(2, 2)).weights);
  batch odd{tensor::zeros({6, 2}), tensor::zeros({6}, dtype::u8)};
  CHECK_THROWS_MATCHES(trainer.forward_backward(odd), bad_input,
                       MessageMatches(ContainsSubstring("a multiple of 4 samples")));
}

TEST_CASE("a batch that the replicas' microbatches do not divide, and no replicas, are refused") {
  CHECK_THROWS_MATCHES(
      Trainer(World::local(1, options_of(2)), replicated(1, 3)), bad_input,
      MessageMatches(ContainsSubstring("3 replicas of 2 microbatches do not divide the batch of "
                                       "32 samples") &&
                     ContainsSubstring("Change --replicas, --microbatches or --batch")));
  CHECK_THROWS_MATCHES(replicated(1, 0), bad_input, MessageMatches(ContainsSubstring("0 replicas")));
}

TEST_CASE("a loss that is infinite in one replica alone stops all replicas before the same step") {
  auto all = points();
  std::vector<std::int64_t> labels(static_cast<std::size_t>(all->num_samples()), 0);
  labels[100] = 3;
  auto samples = std::make_shared<dataset>(
      labelled_samples{all->samples(), tensor::from(labels, {static_cast<std::int64_t>(labels.size())})});
  auto infinite_for_label_3 = [](const variable& output, const tensor& target, double gradient_scale) {
    auto result = nn::CrossEntropy()(output, target, gradient_scale);
    for (auto label : target.values<std::int64_t>())
      if (label == 3) result.loss_sum = std::numeric_limits<double>::infinity();
    return result;
  };
  temp_folder folder;
  auto options = options_of(7);
  options.snapshot_dir = folder.path() / "run";
  options.snapshot_every = 1;
  std::uint64_t num_done = 0;
  Trainer trainer(World::local(2, options), replicated(1, 2).loss(infinite_for_label_3),
                  {.on_step = [&](const step_event& done) { num_done = done.step; }});
  CHECK_THROWS_MATCHES(trainer.fit(samples), std::runtime_error,
                       MessageMatches(ContainsSubstring("the loss")));
  REQUIRE(num_done > 0);
  auto found = snapshot::snapshot_store({.folder = options.snapshot_dir}).find().found;
  REQUIRE(found);
  CHECK(found->step == num_done);
  REQUIRE(found->parts.size() == 1);
  CHECK(found->parts[0].content == layout::replica_content::equal);
}
