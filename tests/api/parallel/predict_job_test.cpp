#include "troupe/parallel/predict_job.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/check_plan.hpp"

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
  CHECK(check_plan(predicted.made).empty());
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

TEST_CASE("the balance counts the activations that the schedule keeps") {
  prediction_options options{
      .schedule = schedule_kind::gpipe, .num_microbatches = 8, .devices = {{}, {}, {}}};
  CHECK(balance_for(options).kept_microbatches == std::vector{8, 8, 8});
  options.schedule = schedule_kind::one_f_one_b;
  CHECK(balance_for(options).kept_microbatches == std::vector{3, 2, 1});
}
