#include "troupe/planning/predict_job.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/checks/check_plan.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// a goes to b, c and d; x takes the samples alone, c takes them beside others; x and c go to d.
cost_profile branches() {
  cost_profile profile{.microbatch_samples = 1};
  for (const auto* name : {"a", "b", "x", "c", "d"})
    profile.layers.push_back({.name = name, .forward_s = 1, .parameter_bytes = 1});
  constexpr auto samples = layer_value::model_input;
  profile.values = {{0, 0, 1, 10}, {samples, 0, 2, 7}, {samples, 0, 3, 7}, {0, 0, 3, 10},
                    {1, 0, 3, 20}, {2, 0, 4, 30},      {0, 0, 4, 10},      {3, 0, 4, 40}};
  return profile;
}

std::string edges_of_plan(const plan& made) {
  std::string text;
  for (const auto& each : made.edges) text += (text.empty() ? "" : ", ") + to_string(each);
  return text;
}

}  // namespace

TEST_CASE("predicted stages are joined as the model's layers: past others, and samples where they are used") {
  auto map = DeviceMap().layer("a", 0).layer("b", 1).layer("x", 2).layer("c", 1).layer("d", 0);
  auto predicted = predict_job(branches(), map, {.num_microbatches = 2, .devices = {{}, {}, {}}});
  CHECK(schedule::check_plan(predicted.made).empty());
  // Stage x takes the samples alone, so it takes them itself; stage c gets them over an edge.
  CHECK(edges_of_plan(predicted.made) ==
        "0.0 -> 1.0, 0.0 -> 3.1, 0.0 -> 4.1, 0.1 -> 3.0, 1.0 -> 3.2, 2.0 -> 4.0, 3.0 -> 4.2");
  std::vector<std::uint64_t> bytes;
  for (const auto& link : predicted.links) bytes.push_back(link.bytes);
  // 0 to 1: a to b and c, and the samples; 1 to 0: c to d. 2 to 0: x to d. Two microbatches.
  CHECK(bytes == std::vector<std::uint64_t>{2 * (10 + 10 + 7 + 40), 2 * 30, 2 * (10 + 10 + 7 + 40), 2 * 30});
}

TEST_CASE("a job of devices that are not there, or with several stages on each, is not predicted") {
  auto map = DeviceMap().layers("a", 0).layer("b", 1).layer("x", 2).layer("c", 1).layer("d", 0);
  CHECK_THROWS_MATCHES(predict_job(branches(), map, {.devices = {{}, {}}}), bad_input,
                       MessageMatches(ContainsSubstring("names device 2, but the job has 2 devices")));
  CHECK_THROWS_MATCHES(balance_for({.schedule = schedule_kind::zb_v, .devices = {{}}}), bad_input,
                       MessageMatches(ContainsSubstring("zb_v has more")));
  CHECK_THROWS_MATCHES(balance_for({}), bad_input, MessageMatches(ContainsSubstring("no devices")));
}

namespace {

/// Four layers that keep 1024 bytes of a microbatch each and hand 256 on, which the next one keeps too.
cost_profile equal_layers() {
  cost_profile profile{.microbatch_samples = 1};
  for (const auto* name : {"a", "b", "c", "d"}) {
    auto layer = static_cast<int>(profile.layers.size());
    layer_cost cost{.name = name,
                    .forward_s = 1,
                    .input_gradient_s = 1,
                    .weight_gradient_s = 1,
                    .parameter_bytes = 4096,
                    .gradient_bytes = 4096,
                    .activation_bytes = 1024};
    cost.passes = {.forward_peak = 1536,
                   .input_gradient_peak = 512,
                   .input_gradient_change = 0,
                   .weight_gradient_peak = 2048,
                   .weight_gradient_change = -1024,
                   .apply_peak = 128};
    profile.layers.push_back(cost);
    if (layer > 0) profile.values.push_back({layer - 1, 0, layer, 256});
  }
  return profile;
}

std::vector<held_memory> memory_of_job(const cost_profile& profile, schedule_kind schedule) {
  auto map = DeviceMap().layer("a", 0).layer("b", 0).layer("c", 1).layer("d", 1);
  return predict_job(profile, map, {.schedule = schedule, .num_microbatches = 4, .devices = {{}, {}}}).memory;
}

}  // namespace

TEST_CASE("the peak of a device has its passes' working memory, where most is kept") {
  auto memory = memory_of_job(equal_layers(), schedule_kind::gpipe);
  // The value that goes out is the receiver's.
  CHECK(memory[0].activations == 4 * (2 * 1024 - 256));
  CHECK(memory[1].activations == 4 * (2 * 1024 + 256));
  CHECK(memory[1].parameters == 2 * 4096);
  CHECK(memory[1].working == 2048);
  // The weight gradient of the first backward, with the gradient that goes back already sent.
  CHECK(memory[1].peak == 4 * 4096 + 4 * (2 * 1024 + 256) - 256 + 2048);
  // The same with the gradient that came, and without one that goes back.
  CHECK(memory[0].peak == 4 * 4096 + 4 * (2 * 1024 - 256) + 256 + 2048);
  // 1F1B keeps the activations of one microbatch on the last device.
  auto fewer = memory_of_job(equal_layers(), schedule_kind::one_f_one_b);
  CHECK(fewer[1].activations == 2 * 1024 + 256);
  CHECK(fewer[0].activations == 2 * (2 * 1024 - 256));
  const auto& ledger = fewer[1].ledger;
  REQUIRE(ledger.size() == 9);  // F and B of 4 microbatches, A
  CHECK(to_string(ledger.back().op) == "1A");
  for (const auto& entry : ledger)
    CHECK(schedule::of(memory_use::activations, entry.held) ==
          (entry.op.kind == action_kind::forward ? 2 * 1024 + 256 : 0));
  CHECK(std::ranges::max(ledger, {}, &schedule::device_ledger::entry::peak).peak ==
        static_cast<std::int64_t>(fewer[1].peak));
}

TEST_CASE(
    "a weight that layers share is held once in a stage, and its gradients are exchanged between stages") {
  auto profile = equal_layers();
  profile.shared = {{0, 1, 1024, 0}};
  auto memory = memory_of_job(profile, schedule_kind::gpipe);
  CHECK(memory[0].parameters == 2 * 4096 - 1024);
  CHECK(memory[0].gradients == 2 * 4096);
  profile.shared = {{0, 3, 4096, 0}};
  for (auto& layer : profile.layers) layer.activation_bytes = 0, layer.passes = {};
  profile.values.clear();
  CHECK(predict_memory(profile, {{0, 4, 0}},
                       make_plan({.num_stages = 1, .num_microbatches = 1, .num_devices = 1}),
                       simulate(make_plan({.num_stages = 1, .num_microbatches = 1, .num_devices = 1}), {}))[0]
            .peak == 8 * 4096 - 4096);
}

TEST_CASE(
    "a GPU holds messages of devices that share its memory, and gets copies of others when it uses them") {
  auto map = DeviceMap().layer("a", 0).layer("b", 0).layer("c", 1).layer("d", 1);
  auto job = predict_job(equal_layers(), map,
                         {.schedule = schedule_kind::gpipe, .num_microbatches = 4, .devices = {{}, {}}});
  CHECK(job.memory[1].messages > 0);
  auto on = [&](int second_gpu, int second_process) {
    return predict_memory(equal_layers(), job.stages, job.made, job.ran,
                          {{{device::kind::cuda, 0}, 0}, {{device::kind::cuda, second_gpu}, second_process}});
  };
  CHECK(on(0, 0) == job.memory);
  for (const auto& elsewhere : {on(1, 0), on(0, 1)})
    for (std::size_t device : {0, 1}) {
      CHECK(elsewhere[device].messages == 0);
      CHECK(elsewhere[device].activations == job.memory[device].activations);
      CHECK(elsewhere[device].peak == job.memory[device].peak);
    }
}

TEST_CASE("a GPU gets copies of the samples, and replicas that own shards divide the optimizer's state") {
  auto profile = equal_layers();
  profile.values.push_back({layer_value::model_input, 0, 0, 128});
  for (auto& layer : profile.layers) layer.optimizer_bytes = 8192;
  auto map = DeviceMap().layer("a", 0).layer("b", 0).layer("c", 0).layer("d", 0);
  auto job =
      predict_job(profile, map, {.schedule = schedule_kind::gpipe, .num_microbatches = 4, .devices = {{}}});
  auto on = [&](device where, int num_shards) {
    return predict_memory(profile, job.stages, job.made, job.ran, {{where, 0}},
                          {.num_shards = num_shards})[0];
  };
  device gpu{device::kind::cuda, 0};
  CHECK(on(gpu, 1).activations == on({}, 1).activations + 4 * 128);
  CHECK(on(gpu, 1).messages == 0);
  CHECK(on({}, 1).messages == 4 * 4 * 128);
  for (const auto& where : {device(), gpu}) {
    CHECK(on(where, 4).optimizer == 8192);
    CHECK(on(where, 4).peak == on(where, 1).peak - 3 * 8192);
  }
}

TEST_CASE("gradients that are freed are there in the backwards, and then a share of the sums") {
  auto profile = equal_layers();
  for (auto& layer : profile.layers) layer.gradient_bytes = 4000;
  auto map = DeviceMap().layer("a", 0).layer("b", 0).layer("c", 0).layer("d", 0);
  auto job =
      predict_job(profile, map, {.schedule = schedule_kind::gpipe, .num_microbatches = 4, .devices = {{}}});
  plan made = make_plan({.kind = schedule_kind::gpipe, .num_microbatches = 4, .num_replicas = 2});
  auto held = predict_memory(profile, job.stages, made, simulate(made, {}), {},
                             {.num_shards = 4, .frees_gradients = true})[0];
  CHECK(held.gradients == 4 * 4000);
  int num_backwards = 0;
  for (const auto& entry : held.ledger) {
    auto now = schedule::of(memory_use::gradients, entry.held);
    if (entry.op.kind == action_kind::forward) CHECK(now == 0);
    if (entry.op.kind == action_kind::backward) CHECK(now == (++num_backwards < 4 ? 4 * 4000 : 4000));
    if (entry.op.kind == action_kind::all_reduce) CHECK(now == 4000);
    if (entry.op.kind == action_kind::apply) CHECK(now == 0);
  }
  CHECK(num_backwards == 4);
}

TEST_CASE("parameters that are freed are whole between U and S alone, beside the replica's own") {
  auto profile = equal_layers();
  for (auto& layer : profile.layers) layer.parameter_bytes = 4000;
  auto map = DeviceMap().layer("a", 0).layer("b", 0).layer("c", 0).layer("d", 0);
  auto job =
      predict_job(profile, map, {.schedule = schedule_kind::gpipe, .num_microbatches = 2, .devices = {{}}});
  std::vector<layer_run> stages{{0, 2, 0}, {2, 4, 0}};
  auto held_with = [&](int ahead) {
    plan made = make_plan({.kind = schedule_kind::looped_bfs,
                           .num_stages = 2,
                           .num_microbatches = 2,
                           .num_devices = 1,
                           .num_replicas = 4,
                           .gathers = {.gathers = true, .frees = true, .ahead = ahead}});
    return predict_memory(profile, stages, made, simulate(made, {}), {},
                          {.num_shards = 4, .frees_gradients = true, .frees_parameters = true})[0];
  };
  auto held = held_with(0);
  CHECK(held.parameters == 4000 + 2 * 4000);  // of four layers a fourth, and those of one stage
  std::vector<std::int64_t> seen;
  for (const auto& entry : held.ledger)
    if (is_of_storage(entry.op.kind)) seen.push_back(schedule::of(memory_use::parameters, entry.held));
  CHECK(seen == std::vector<std::int64_t>{12000, 4000, 12000, 4000, 12000, 4000});
  CHECK(held_with(1).parameters == 4000 + 4 * 4000);
}

TEST_CASE("the balance counts the activations that the schedule keeps") {
  prediction_options options{
      .schedule = schedule_kind::gpipe, .num_microbatches = 8, .devices = {{}, {}, {}}};
  CHECK(balance_for(options).kept_microbatches == std::vector{8, 8, 8});
  options.schedule = schedule_kind::one_f_one_b;
  CHECK(balance_for(options).kept_microbatches == std::vector{3, 2, 1});
}
