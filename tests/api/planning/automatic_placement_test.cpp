// Automatic placement by all that predict_job counts, against all placements of small drawn models.
#include "troupe/planning/detail/automatic_placement.hpp"

#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <random>

#include "troupe/error/errors.hpp"

using namespace troupe;

namespace {

cost_profile drawn_profile(std::mt19937& random) {
  auto up_to = [&random](std::uint64_t most) { return random() % (most + 1); };
  cost_profile profile{.microbatch_samples = 1};
  auto num_layers = 3 + static_cast<int>(up_to(4));
  for (int layer = 0; layer < num_layers; ++layer) {
    auto bytes = 64 + up_to(4000);
    layer_cost cost{.name = "l" + std::to_string(layer),
                    .forward_s = 0.1 + static_cast<double>(up_to(20)),
                    .input_gradient_s = static_cast<double>(up_to(20)),
                    .weight_gradient_s = static_cast<double>(up_to(20)),
                    .parameter_bytes = bytes,
                    .gradient_bytes = bytes,
                    .optimizer_bytes = 2 * bytes,
                    .activation_bytes = up_to(2000)};
    cost.passes = {.forward_peak = cost.activation_bytes + up_to(6000),
                   .input_gradient_peak = up_to(6000),
                   .weight_gradient_peak = up_to(6000),
                   .apply_peak = up_to(500)};
    profile.layers.push_back(cost);
    if (layer > 0) profile.values.push_back({layer - 1, 0, layer, 64 + up_to(500)});
  }
  return profile;
}

/// The least that all devices would need more, over both orders of two devices and all cuts; 0: one fits.
std::uint64_t least_missing(const cost_profile& profile, const prediction_options& options) {
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (std::size_t cut = 1; cut < profile.layers.size(); ++cut)
    for (int first : {0, 1}) {
      DeviceMap map;
      for (std::size_t layer = 0; layer < profile.layers.size(); ++layer)
        map.layer(profile.layers[layer].name, layer < cut ? first : 1 - first);
      auto memory = predict_job(profile, map, options).memory;
      std::uint64_t missing = 0;
      for (std::size_t device = 0; device < 2; ++device)
        if (auto limit = options.devices[device].memory_bytes; memory[device].peak > limit)
          missing = std::max(missing, memory[device].peak - limit);
      least = std::min(least, missing);
    }
  return least;
}

}  // namespace

TEST_CASE("the automatic placement fits by all that is predicted, or says how much more memory does") {
  std::mt19937 random(1);
  int fitted = 0, missed = 0, refused = 0;
  for (int i = 0; i < 400; ++i) {
    auto profile = drawn_profile(random);
    prediction_options options{.num_microbatches = 4, .devices = {{}, {}}};
    for (auto& device : options.devices)
      device = {.speed = 1.0 + static_cast<double>(random() % 2), .memory_bytes = 20'000 + random() % 40'000};
    auto placed = detail::automatic_placement(profile, options);
    auto least = least_missing(profile, options);
    CAPTURE(i, placed.missing_bytes, least);
    CHECK(placed.missing_bytes >= least);
    if (placed.missing_bytes == 0) {
      ++fitted;
    } else {
      least == 0 ? ++missed : ++refused;
      for (auto& device : options.devices) device.memory_bytes += placed.missing_bytes;
    }
    auto memory = predict_job(profile, placed.map, options).memory;
    for (std::size_t device = 0; device < 2; ++device)
      CHECK(memory[device].peak <= options.devices[device].memory_bytes);
  }
  CHECK(fitted > 100);
  CHECK(refused > 50);
  CHECK(missed * 20 <= fitted);  // room that is kept free for one placement can be too much for another
}

TEST_CASE("a placement without limits is that of the balance, and the largest limit is no special case") {
  std::mt19937 random(2);
  auto profile = drawn_profile(random);
  prediction_options options{.devices = {{}, {}}};
  auto placed = detail::automatic_placement(profile, options);
  CHECK(placed.missing_bytes == 0);
  CHECK(placed.map.to_yaml() == DeviceMap::automatic(profile, balance_for(options)).to_yaml());
  options.devices = {{.memory_bytes = std::numeric_limits<std::uint64_t>::max()}, {.memory_bytes = 1}};
  CHECK(detail::automatic_placement(profile, options).missing_bytes > 0);
}
