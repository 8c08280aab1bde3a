// Replicas that own shards of the optimizer's state, of gradients and of weights, in one process.
#include <algorithm>
#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <functional>
#include <map>

#include "api/replicas/replica_training.hpp"
#include "support/bits.hpp"
#include "support/models/conditional_model.hpp"
#include "support/temp_folder.hpp"

using namespace troupe;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Parameters of several blocks, of one and one element more, and small ones.
nn::Sequential wide_model() {
  return nn::Sequential(nn::Linear(2, 16), nn::ReLU(), nn::Linear(16, 1024), nn::Tanh(), nn::Linear(1024, 65),
                        nn::ReLU(), nn::Linear(65, 4));
}

using changed_pipeline = std::function<Pipeline(Pipeline)>;
Pipeline as_it_is(Pipeline pipeline) { return pipeline; }

Pipeline sharded(Pipeline pipeline, shard_strategy strategy = shard_strategy::optimizer) {
  return pipeline.shard(strategy);
}

constexpr auto all_strategies = {shard_strategy::optimizer, shard_strategy::grad, shard_strategy::full};

/// With shards, on any devices, as without.
void check_same_bits(const nn::Sequential& model, const changed_pipeline& changed = as_it_is,
                     std::uint64_t steps = 4) {
  for (int replicas : {2, 3}) {
    CAPTURE(replicas);
    constexpr int batch = 48;
    auto expected = train(1, changed(replicated(1, replicas, model)), steps, batch);
    for (auto strategy : all_strategies) {
      CAPTURE(to_string(strategy));
      auto with = [&](int stages) { return sharded(changed(replicated(stages, replicas, model)), strategy); };
      CHECK(train(1, with(1), steps, batch) == expected);
      CHECK(train(2 * replicas, with(2), steps, batch) == expected);
      CHECK(train(2, with(3), steps, batch) == expected);
    }
  }
}

}  // namespace

TEST_CASE("replicas that own shards of the optimizer's state have the bits of those that hold all of it",
          "[shards]") {
  check_same_bits(wide_model());
  check_same_bits(dropped_model());
}

TEST_CASE("shards have the bits of whole replicas where gradients are clipped, rounded or scaled",
          "[shards]") {
  check_same_bits(wide_model(), [](Pipeline pipeline) { return pipeline.clip_grad_norm(0.05); });
  check_same_bits(wide_model(), [](Pipeline pipeline) { return pipeline.gradient_sync(dtype::bf16); });
  check_same_bits(
      wide_model(),
      [](Pipeline pipeline) { return pipeline.precision(dtype::f16).loss_scale({.initial_scale = 1 << 28}); },
      12);
}

TEST_CASE("an optimizer that needs whole parameters gets them, with the same bits", "[shards]") {
  check_same_bits(wide_model(),
                  [](Pipeline pipeline) { return pipeline.optimizer(optim::LAMB({.lr = 0.01})); });
}

TEST_CASE("frozen weights, weights that few use, and tied ones have the same bits with shards", "[shards]") {
  auto frozen = wide_model();
  frozen.named_parameters()[2].target->requires_gradient = false;
  check_same_bits(frozen);
  auto conditional = [](int devices, int stages, shard_strategy strategy) {
    auto pipeline = Pipeline(conditional_model())
                        .stages(stages)
                        .microbatches(2)
                        .replicas(2)
                        .optimizer(optim::Adam({.lr = 0.01}));
    return train(devices, sharded(pipeline, strategy), 6, 24);
  };
  auto expected = conditional(1, 1, shard_strategy::none);
  for (auto strategy : all_strategies) {
    CHECK(conditional(2, 1, strategy) == expected);
    CHECK(conditional(4, 2, strategy) == expected);
  }
}

TEST_CASE("every schedule trains shards to the same bits", "[shards]") {
  auto expected = train(1, replicated(1, 2, wide_model()), 3, 32);
  for (auto kind :
       {schedule_kind::gpipe, schedule_kind::interleaved_1f1b, schedule_kind::zb_h1, schedule_kind::zb_v}) {
    CAPTURE(to_string(kind));
    auto devices = usual_chunks(kind) == 1 ? 4 : 2 * 2;
    auto stages = usual_chunks(kind) == 1 ? 2 : 4;
    for (auto strategy : all_strategies)
      CHECK(train(devices, sharded(replicated(stages, 2, wide_model()).schedule(kind), strategy), 3, 32) ==
            expected);
  }
}

TEST_CASE("no bit depends on when stages gather weights, and when they let go of them", "[shards]") {
  auto expected = train(1, replicated(1, 2, wide_model()), 4, 48);
  for (int stages : {2, 3})
    for (auto point : {schedule::reshard_point::pass, schedule::reshard_point::step})
      for (int ahead : {0, 2, 64}) {
        CAPTURE(stages, to_string(point), ahead);
        auto gathers = sharded(replicated(stages, 2, wide_model()), shard_strategy::full)
                           .reshard_after(point)
                           .gather_ahead(ahead);
        CHECK(train(2, gathers, 4, 48) == expected);
        CHECK(train(2, gathers.schedule(schedule_kind::gpipe), 4, 48) == expected);
      }
}

TEST_CASE("calls about weights are about those of all shards", "[shards]") {
  auto strategy = GENERATE(shard_strategy::optimizer, shard_strategy::full);
  temp_folder folder;
  Trainer whole(World::local(1, options_of(3)), replicated(2, 2, wide_model()));
  Trainer shards(World::local(4, options_of(3)), sharded(replicated(2, 2, wide_model()), strategy));
  for (int call = 0; call < 2; ++call) {
    CHECK(shards.weights_sha256() == whole.weights_sha256());
    CHECK(same_bits(shards.state_dict(), whole.state_dict()));
    CHECK(same_bits(shards.predict(points()), whole.predict(points())));
    CHECK(shards.evaluate(points()).loss == whole.evaluate(points()).loss);
    CHECK(shards.evaluate(four_corners(31)).loss == whole.evaluate(four_corners(31)).loss);
    if (call > 0) break;
    whole.fit(points());
    shards.fit(points());
  }
  shards.save(folder.path() / "weights.safetensors");
  auto written = read_safetensors(folder.path() / "weights.safetensors").tensors;
  CHECK(same_bits(written, whole.state_dict()));
}

TEST_CASE("a replica holds its share of the optimizer's state", "[shards]") {
  auto held_by = [](int replicas, bool shards) {
    auto pipeline = replicated(1, replicas, wide_model());
    Trainer trainer(World::local(replicas, options_of(2, 48)), shards ? sharded(pipeline) : pipeline);
    trainer.fit(points());
    std::vector<std::size_t> held;
    for (const auto& each : trainer.memory_report().devices) {
      auto of = [&each](memory_use use) { return each.measured.by_use[static_cast<std::size_t>(use)]; };
      held.push_back(of(memory_use::optimizer));
      // Whoever reads another one's weights is not charged for them.
      CHECK(of(memory_use::parameters) >= sizeof(float) * (2 * 16 + 16 * 1024 + 1024 * 65 + 65 * 4));
    }
    return held;
  };
  auto whole = held_by(1, false).front();
  for (int replicas : {2, 4}) {
    auto held = held_by(replicas, true);
    REQUIRE(held.size() == static_cast<std::size_t>(replicas));
    // Two moments of one block, and what allocating small blocks takes.
    auto most =
        whole / static_cast<std::size_t>(replicas) + 2 * (std::size_t{1} << 14) * sizeof(float) + 8192;
    for (auto bytes : held) CHECK(bytes <= most);
    CHECK(held_by(replicas, false).back() == whole);
  }
}

TEST_CASE("what stages cannot divide evenly is another replica's in each", "[shards]") {
  constexpr std::int64_t width = 64;
  nn::Sequential narrow;
  narrow.push_back(nn::Linear(2, width));
  for (int layer = 0; layer < 6; ++layer) narrow.push_back(nn::Linear(width, width));
  narrow.push_back(nn::Linear(width, 4));
  Trainer trainer(World::local(2, options_of(2, 48)), sharded(replicated(8, 2, narrow)));
  trainer.fit(points());
  std::vector<std::size_t> held;
  for (const auto& each : trainer.memory_report().devices)
    held.push_back(each.measured.by_use[static_cast<std::size_t>(memory_use::optimizer)]);
  REQUIRE(held.size() == 2);
  auto of_one_weight = static_cast<std::size_t>(2 * width * width) * sizeof(float);
  CHECK(std::max(held[0], held[1]) - std::min(held[0], held[1]) <= of_one_weight);
}

TEST_CASE("with shards of gradients a replica holds these within a step alone, and none twice", "[shards]") {
  auto held_by = [](int stages, shard_strategy strategy) {
    Trainer trainer(World::local(2, options_of(3, 48)),
                    sharded(replicated(stages, 2, wide_model()), strategy));
    trainer.fit(points());
    auto report = trainer.memory_report();
    std::pair<std::size_t, std::size_t> most;  // now, at most
    for (const auto& each : report.devices) {
      auto now = each.measured.by_use[static_cast<std::size_t>(memory_use::gradients)];
      most = {std::max(most.first, now), std::max(most.second, each.measured.peak)};
    }
    return most;
  };
  constexpr auto all = sizeof(float) * (2 * 16 + 16 + 16 * 1024 + 1024 + 1024 * 65 + 65 + 65 * 4 + 4);
  auto [whole_now, whole_peak] = held_by(1, shard_strategy::optimizer);
  CHECK(whole_now >= all);
  auto [now, peak] = held_by(1, shard_strategy::grad);
  CHECK(now < all / 10);                // those of small weights may stay
  CHECK(peak < whole_peak + all / 10);  // what arrives differs by when it does
}

TEST_CASE("with shards of weights a replica holds its share, and of the others no more than the plan says",
          "[shards]") {
  auto all = [] {
    std::size_t bytes = 0;
    for (const auto& each : wide_model().named_parameters())
      bytes += static_cast<std::size_t>(each.target->extents.num_elements()) * sizeof(float);
    return bytes;
  }();
  constexpr auto block_bytes = (std::size_t{1} << 14) * sizeof(float);
  for (int replicas : {2, 4}) {
    CAPTURE(replicas);
    Trainer trainer(World::local(replicas, options_of(3, 48)),
                    sharded(replicated(2, replicas, wide_model()), shard_strategy::full));
    for (bool evaluates : {false, true}) {
      if (evaluates)
        trainer.evaluate(points());
      else
        trainer.fit(points());
      auto report = trainer.memory_report();
      REQUIRE(report.devices.size() == static_cast<std::size_t>(replicas));
      for (const auto& each : report.devices) {
        auto parameters = each.measured.by_use[static_cast<std::size_t>(memory_use::parameters)];
        // In each stage its share of whole blocks, and what allocating small ones takes.
        CHECK(parameters <= all / static_cast<std::size_t>(replicas) + 2 * block_bytes + 8192);
      }
    }
  }
}

TEST_CASE("shards are refused where replicas have none to own, or need all that others have", "[shards]") {
  auto refused = [](const Pipeline& pipeline, const char* why, const char* to_do) {
    CHECK_THROWS_MATCHES(Trainer(World::local(1, options_of(2)), sharded(pipeline)), bad_input,
                         MessageMatches(ContainsSubstring("shard optimizer") && ContainsSubstring(why) &&
                                        ContainsSubstring(to_do)));
  };
  refused(replicated(1, 1), "one replica", "--replicas 2 or more");
  refused(replicated(1, 2).top_k_gradients(0.5), "top_k_gradients 0.5", "Use one of them");
  refused(replicated(1, 2).power_sgd_rank(2), "power_sgd_rank 2", "Use one of them");
  refused(replicated(1, 2).average_every(2), "average_every 2", "Use one of them");
  refused(replicated(1, 2).schedule(schedule_kind::pipedream_2bw).flush_every(2), "flush_every 2",
          "--flush-every 1");
  refused(replicated(1, 2,
                     nn::Sequential(nn::Linear(2, 16), nn::Reshape({4, 2, 2}), nn::BatchNorm2d(4),
                                    nn::Flatten(), nn::Linear(16, 4))),
          "BatchNorm2d", "convert_sync_batch_norm");
  CHECK_THROWS_MATCHES(Trainer(World::local(1, options_of(2)), sharded(replicated(1, 2)).gather_ahead(2)),
                       bad_input, MessageMatches(ContainsSubstring("but with shard full")));
  CHECK_THROWS_MATCHES(replicated(1, 2).gather_ahead(-1), bad_input,
                       MessageMatches(ContainsSubstring("from 0 to 64 passes ahead, got -1")));
  temp_folder folder;
  auto file = folder.path() / "plan.csv";
  std::ofstream(file) << "0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD\n";
  auto planned = sharded(replicated(1, 2).plan_file(file), shard_strategy::full);
  Trainer sound(World::local(1, options_of(2)), planned);
  CHECK_THROWS_MATCHES(Trainer(World::local(1, options_of(2)), planned.gather_ahead(3)), bad_input,
                       MessageMatches(ContainsSubstring("the plan says itself") &&
                                      ContainsSubstring("Leave --gather-ahead and --reshard-after out")));
  auto given = options_of(2);
  given.replicas = 2;
  given.shard = "optimizer";
  given.given.insert("shard");
  CHECK_THROWS_MATCHES(Trainer(World::local(1, given), replicated(1, 2)), bad_input,
                       MessageMatches(ContainsSubstring("--shard optimizer was given, but")));
}
