// What replicas exchange instead of gradients in f32: gradients in 16 bits, the largest ones, factors,
// averages of weights; the same bits with any partition, and what refuses them.
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>

#include "api/replicas/replica_training.hpp"
#include "troupe/data/detail/training_source.hpp"
#include "troupe/detail/replica_weights.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/ops/elementwise.hpp"
#include "troupe/snapshot/weights_hash.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Local SGD without pipelines: each replica has a model and an optimizer of its own, and after every
/// `period` steps the weights are averaged. The weights are those of replica 0.
trained_bits plain_averages(int replicas, std::uint64_t period, int batch = 48, std::uint64_t steps = 6) {
  constexpr int microbatches = 2;
  auto options = options_of(steps, batch);
  std::vector<nn::Sequential> models;
  models.reserve(static_cast<std::size_t>(replicas));  // the optimizers keep addresses
  std::vector<std::unique_ptr<optim::optimizer_state>> optimizers;
  for (int replica = 0; replica < replicas; ++replica) {
    models.push_back(dropped_model());
    models.back().materialize(options.seed);
    optimizers.push_back(optim::Adam({.lr = 0.01})(models.back().named_parameters()));
  }
  auto source =
      detail::make_training_source(points(), {options.batch, microbatches, options.seed, 1, replicas});
  auto rows = batch / (replicas * microbatches);
  trained_bits seen;
  for (std::uint64_t step = 0; step < steps; ++step) {
    auto given = source->at(step);
    double loss_of_step = 0;
    for (int replica = 0; replica < replicas; ++replica) {
      double loss_of_replica = 0;
      for (int index = 0; index < microbatches; ++index) {
        auto first = (replica * microbatches + index) * rows;
        auto output = models[static_cast<std::size_t>(replica)]({given.inputs.rows(first, rows)});
        auto result =
            nn::CrossEntropy()(output, given.targets.rows(first, rows), 1.0 / (rows * microbatches));
        result.loss.backward();
        loss_of_replica += result.loss_sum;
      }
      optimizers[static_cast<std::size_t>(replica)]->apply(step);
      loss_of_step += loss_of_replica;
    }
    seen.losses.push_back(std::bit_cast<std::uint64_t>(loss_of_step / batch));
    auto parameters = models.front().named_parameters();
    for (std::size_t i = 0; (step + 1) % period == 0 && i < parameters.size(); ++i) {
      std::vector<tensor> weights;
      for (auto& each : models) weights.push_back(each.named_parameters()[i].target->value().clone());
      auto mean = tree_sum(weights, 0, weights.size()).clone();
      scale(mean, 1.0F / static_cast<float>(replicas));
      for (auto& each : models) {
        each.named_parameters()[i].target->value().copy_from(mean);
        each.named_parameters()[i].target->mark_changed();
      }
    }
  }
  std::vector<named_tensor> weights;
  for (const auto& each : models.front().named_parameters())
    weights.push_back({each.name, each.target->value()});
  seen.weights = weights_sha256(std::move(weights));
  return seen;
}

}  // namespace

TEST_CASE("gradients that replicas exchange in 16 bits have the bits of a plain loop that rounds them") {
  for (auto sync : {dtype::bf16, dtype::f16})
    for (int replicas : {2, 4}) {
      auto expected = plain_loop(replicas, 32, sync);
      CHECK_FALSE(expected == plain_loop(replicas));
      for (int stages : {1, 3}) {
        CAPTURE(to_string(sync), replicas, stages);
        auto pipeline = replicated(stages, replicas).gradient_sync(sync);
        CHECK(train(1, pipeline) == expected);
        CHECK(train(stages * replicas, pipeline) == expected);
        if (stages == 3) CHECK(train(2, pipeline.schedule(schedule_kind::zb_h1)) == expected);
      }
    }
}

TEST_CASE("top-k of replicas has the same bits with any partition, and all elements those of the sum") {
  nn::Sequential model(nn::Linear(2, 160), nn::ReLU(), nn::Linear(160, 160), nn::Tanh(), nn::Linear(160, 4));
  auto with = [&model](int stages, double fraction, int replicas = 2) {
    return replicated(stages, replicas, model).top_k_gradients(fraction);
  };
  auto dense = train(1, with(1, 0));
  CHECK(train(1, with(1, 1)) == dense);
  CHECK(train(2, with(1, 1, 4)) == train(1, with(1, 0, 4)));
  for (int replicas : {2, 4}) {
    auto expected = train(1, with(1, 0.05, replicas));
    CHECK_FALSE(expected == dense);
    CHECK(train(3, with(3, 0.05, replicas)) == expected);
    CHECK(train(replicas * 2, with(2, 0.05, replicas).schedule(schedule_kind::zb_h1)) == expected);
  }
  auto clipped = train(1, with(1, 0.05).clip_grad_norm(0.5));
  CHECK(train(4, with(2, 0.05).clip_grad_norm(0.5)) == clipped);
}

TEST_CASE("PowerSGD of replicas has the same bits with any partition, and a full rank nearly the sum") {
  nn::Sequential model(nn::Linear(2, 160), nn::ReLU(), nn::Linear(160, 160), nn::Tanh(), nn::Linear(160, 4));
  auto with = [&model](int stages, int rank, int replicas = 2) {
    return replicated(stages, replicas, model).power_sgd_rank(rank);
  };
  auto dense = train(1, with(1, 0));
  for (int replicas : {2, 3, 4}) {
    auto expected = train(1, with(1, 2, replicas), 6, 48);
    CHECK_FALSE(expected == train(1, with(1, 3, replicas), 6, 48));
    CHECK(train(3, with(3, 2, replicas), 6, 48) == expected);
    CHECK(train(replicas * 2, with(2, 2, replicas).schedule(schedule_kind::zb_h1), 6, 48) == expected);
  }
  CHECK_FALSE(train(1, with(1, 2)) == dense);
  auto clipped = train(1, with(1, 2).clip_grad_norm(0.5));
  CHECK_FALSE(clipped == train(1, with(1, 2)));
  CHECK(train(4, with(2, 2).clip_grad_norm(0.5)) == clipped);
}

TEST_CASE("a compression that compresses no gradient of the model is refused") {
  nn::Sequential model(nn::Linear(2, 160), nn::ReLU(), nn::Linear(160, 160), nn::Tanh(), nn::Linear(160, 4));
  auto check_refused = [](const Pipeline& pipeline, const std::string& expected) {
    CHECK_THROWS_MATCHES(Trainer(World::local(1, options_of(2)), pipeline), bad_input,
                         MessageMatches(ContainsSubstring(expected)));
  };
  // 2 * (160 + 160) * 40 elements are half of the largest matrix.
  check_refused(replicated(1, 2, model).power_sgd_rank(41), "Use a rank of at most 40");
  CHECK_NOTHROW(Trainer(World::local(1, options_of(2)), replicated(1, 2, model).power_sgd_rank(40)));
  check_refused(replicated(1, 2).power_sgd_rank(1), "power_sgd_rank compresses no gradient of this model");
  check_refused(replicated(1, 2).top_k_gradients(0.5),
                "top_k_gradients compresses no gradient of this model");
}

TEST_CASE("replicas that average their weights have the bits of plain loops of their own") {
  for (int replicas : {2, 3}) {
    auto expected = plain_averages(replicas, 3);
    for (int stages : {1, 3}) {
      CAPTURE(replicas, stages);
      auto pipeline = replicated(stages, replicas).average_every(3);
      CHECK(train(1, pipeline, 6, 48) == expected);
      CHECK(train(stages * replicas, pipeline, 6, 48) == expected);
      CHECK(train(2, pipeline.schedule(schedule_kind::zb_h1), 6, 48) == expected);
    }
  }
  CHECK_FALSE(plain_averages(2, 3) == plain_averages(2, 2));
}

TEST_CASE("replicas that average their weights clip and scale for themselves, with any partition") {
  auto with = [](int stages) {
    return replicated(stages, 2)
        .average_every(2)
        .clip_grad_norm(0.05)
        .precision(dtype::f16)
        .loss_scale({.initial_scale = 1 << 20});
  };
  auto expected = train(1, with(1), 8);
  CHECK_FALSE(expected == train(1, with(1).clip_grad_norm(0), 8));
  CHECK(train(4, with(2), 8) == expected);
  CHECK(train(3, with(3), 8) == expected);
}

TEST_CASE("between two averages calls about weights are about those of replica 0") {
  auto source = detail::make_training_source(points(), {32, 2, small_options().seed, 1, 2});
  Trainer trainer(World::local(2, options_of(6)), replicated(1, 2).average_every(3));
  std::vector<std::string> seen;
  for (std::uint64_t step = 0; step < 3; ++step) {
    trainer.forward_backward(source->at(step));
    trainer.optimizer_step();
    seen.push_back(trainer.weights_sha256());
  }
  CHECK(seen[0] == plain_averages(2, 3, 32, 1).weights);
  CHECK(seen[2] == plain_averages(2, 3, 32, 3).weights);
  CHECK(detail::note_on_weights("save", 3, 6).empty());
  CHECK(detail::note_on_weights("save", 0, 5).empty());
  CHECK_THAT(detail::note_on_weights("save", 3, 5),
             ContainsSubstring("save is about the weights of replica 0") &&
                 ContainsSubstring("made 2 steps") && ContainsSubstring("after 1 more") &&
                 ContainsSubstring("average_every 3"));
}

TEST_CASE("PowerSGD and averages are refused where they have no replicas or not what they need") {
  auto refused = [](const Pipeline& pipeline, const char* what, const char* to_do, bool skips = false) {
    auto options = options_of(2);
    if (skips) options.on_non_finite = "skip";
    CHECK_THROWS_MATCHES(Trainer(World::local(1, options), pipeline), bad_input,
                         MessageMatches(ContainsSubstring(what) && ContainsSubstring(to_do)));
  };
  auto factored = [](int replicas) { return replicated(1, replicas).power_sgd_rank(2); };
  auto averaging = [](int replicas) { return replicated(1, replicas).average_every(2); };
  refused(factored(1), "power_sgd_rank 2", "--replicas 2 or more, or leave --power-sgd-rank out");
  refused(averaging(1), "average_every 2", "--replicas 2 or more, or leave --average-every out");
  refused(factored(2).precision(dtype::f16), "power_sgd_rank 2 holds gradients back", "--precision f32");
  refused(factored(2), "skipped steps", "--on-non-finite stop", true);
  refused(factored(2).gradient_sync(dtype::bf16), "power_sgd_rank 2 and gradient_sync bf16", "one of them");
  refused(factored(2).top_k_gradients(0.5), "power_sgd_rank 2 and top_k_gradients 0.5", "one of them");
  refused(averaging(2).power_sgd_rank(2), "average_every 2 and power_sgd_rank 2", "one of them");
  refused(averaging(2).schedule(schedule_kind::pipedream_2bw).flush_every(2), "flush_every 2",
          "--flush-every 1");
  CHECK_THROWS_MATCHES(factored(2).power_sgd_rank(-1), bad_input,
                       MessageMatches(ContainsSubstring("rank -1")));
  CHECK_THROWS_MATCHES(averaging(2).average_every(-1), bad_input,
                       MessageMatches(ContainsSubstring("every -1 steps")));
  Trainer odd(World::local(1, options_of(5)), averaging(2));
  CHECK_THROWS_MATCHES(odd.fit(points()), bad_input,
                       MessageMatches(ContainsSubstring("5 steps are no multiple of --average-every 2") &&
                                      ContainsSubstring("--steps 4 or 6")));
  for (const auto* name : {"power_sgd_rank", "average_every"}) {
    auto given = options_of(2);
    given.replicas = 2;
    given.power_sgd_rank = given.average_every = 2;
    given.given.insert(name);
    CHECK_THROWS_MATCHES(Trainer(World::local(1, given), replicated(1, 2)), bad_input,
                         MessageMatches(ContainsSubstring(" 2 was given, but")));
  }
}

TEST_CASE("top-k is refused where it has no replicas, or gradients would be lost") {
  auto refused = [](const Pipeline& pipeline, const char* what, const char* to_do, bool skips = false) {
    auto options = options_of(2);
    if (skips) options.on_non_finite = "skip";
    CHECK_THROWS_MATCHES(Trainer(World::local(1, options), pipeline), bad_input,
                         MessageMatches(ContainsSubstring("top_k_gradients 0.25") &&
                                        ContainsSubstring(what) && ContainsSubstring(to_do)));
  };
  auto with = [](int replicas) { return replicated(1, replicas).top_k_gradients(0.25); };
  refused(with(1), "one replica", "--replicas 2");
  refused(with(2).gradient_sync(dtype::bf16), "gradient_sync bf16", "one of them");
  refused(with(2).precision(dtype::f16), "loss scale", "--precision f32");
  refused(with(2), "skipped steps", "--on-non-finite stop", true);
  for (double fraction : {-0.5, 1.5})
    CHECK_THROWS_MATCHES(replicated(1, 2).top_k_gradients(fraction), bad_input,
                         MessageMatches(ContainsSubstring("at most 1")));
}

TEST_CASE("gradient_sync without replicas or in integers is refused") {
  CHECK_THROWS_MATCHES(
      Trainer(World::local(1, options_of(2)), replicated(1, 1).gradient_sync(dtype::bf16)), bad_input,
      MessageMatches(ContainsSubstring("gradient_sync bf16") && ContainsSubstring("--replicas 2")));
  CHECK_THROWS_MATCHES(
      replicated(1, 2).gradient_sync(dtype::i64), bad_input,
      MessageMatches(ContainsSubstring("i64") && ContainsSubstring("one of f32, bf16, f16")));
  auto given = options_of(2);
  given.replicas = 2;
  given.gradient_sync = dtype::f16;
  given.given.insert("gradient_sync");
  CHECK_THROWS_MATCHES(Trainer(World::local(1, given), replicated(1, 2)), bad_input,
                       MessageMatches(ContainsSubstring("--gradient-sync f16 was given, but")));
}
