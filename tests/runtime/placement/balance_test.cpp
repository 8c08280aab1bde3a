#include "troupe/placement/balance.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::balance;
using troupe::balance_options;
using troupe::cost_profile;
using troupe::layer_chunk;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A chain of layers of these costs, each with a parameter of one byte.
cost_profile chain(const std::vector<double>& seconds) {
  cost_profile profile{.microbatch_samples = 1};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    profile.layers.push_back(
        {.name = "l" + std::to_string(i), .forward_s = seconds[i], .parameter_bytes = 1});
    auto layer = static_cast<int>(i);
    profile.values.push_back({layer - 1, 0, layer, 1});
  }
  return profile;
}

/// Whole numbers, so that sums are exact in any order. Some layers have no parameters, some values skip
/// layers.
cost_profile drawn_profile(std::mt19937& random) {
  auto below = [&random](unsigned bound) { return static_cast<int>(random() % bound); };
  cost_profile profile{.microbatch_samples = 1};
  auto num_layers = 3 + below(5);
  for (int layer = 0; layer < num_layers; ++layer) {
    auto has_parameters = layer < 2 || below(4) > 0;
    profile.layers.push_back({.name = "l" + std::to_string(layer),
                              .forward_s = 12.0 * below(10),
                              .input_gradient_s = 12.0 * below(10),
                              .weight_gradient_s = 12.0 * below(5),
                              .apply_s = 12.0 * below(8),
                              .parameter_bytes = has_parameters ? 1U + random() % 20 : 0U,
                              .gradient_bytes = random() % 10,
                              .optimizer_bytes = random() % 30,
                              .activation_bytes = random() % 20});
    for (int from = std::max(-1, layer - 3); from < layer; ++from)
      if (from == layer - 1 || below(3) == 0)
        profile.values.push_back({from, 0, layer, static_cast<std::uint64_t>(1 + below(30))});
  }
  // All users of one value get the same bytes.
  for (auto& value : profile.values)
    value.bytes = std::ranges::find_if(profile.values, [&value](const auto& other) {
                    return other.from == value.from;
                  })->bytes;
  return profile;
}

balance_options drawn_options(std::mt19937& random, int num_devices) {
  balance_options options;
  constexpr double speeds[] = {1, 2, 0.5};
  for (int device = 0; device < num_devices; ++device) {
    options.devices.push_back({speeds[random() % 3], random() % 3 == 0 ? 100U + random() % 250 : 0U});
    options.kept_microbatches.push_back(num_devices - device);
  }
  if (random() % 2) options.bytes_per_s = 0.5;
  if (random() % 2) options.latency_s = 3;
  options.num_microbatches = 1 + static_cast<int>(random() % 4);
  return options;
}

struct chunk_cost {
  double time_s = 0;
  std::uint64_t bytes = 0;
};

/// Written straight from the definition, for the comparison.
chunk_cost cost_of(const cost_profile& profile, const balance_options& options, int first, int last,
                   std::size_t position, int device) {
  chunk_cost cost;
  for (int i = first; i < last; ++i) {
    const auto& layer = profile.layers[static_cast<std::size_t>(i)];
    cost.time_s +=
        options.num_microbatches * (layer.forward_s + layer.input_gradient_s + layer.weight_gradient_s) +
        layer.apply_s;
    cost.bytes += layer.parameter_bytes + layer.gradient_bytes + layer.optimizer_bytes + layer.buffer_bytes +
                  layer.activation_bytes * static_cast<std::uint64_t>(options.kept_microbatches[position]);
  }
  cost.time_s /= options.devices[static_cast<std::size_t>(device)].speed;
  std::set<int> taken;
  double bytes = 0;
  for (const auto& value : profile.values)
    if (value.to >= first && value.to < last && value.from < first && taken.insert(value.from).second)
      bytes += static_cast<double>(value.bytes);
  cost.bytes +=
      static_cast<std::uint64_t>(bytes) * static_cast<std::uint64_t>(options.kept_microbatches[position]);
  taken.erase(troupe::layer_value::model_input);
  if (first > 0 && !taken.empty())
    cost.time_s += options.num_microbatches * 2 *
                   (options.latency_s + (options.bytes_per_s > 0 ? bytes / options.bytes_per_s : 0));
  return cost;
}

bool may_begin(const cost_profile& profile, int layer) {
  auto has_parameters = [&profile](int i) {
    return profile.layers[static_cast<std::size_t>(i)].parameter_bytes > 0;
  };
  bool is_after_parameters = false;
  for (int i = 0; i < layer; ++i) is_after_parameters = is_after_parameters || has_parameters(i);
  return has_parameters(layer) && is_after_parameters;
}

/// The least bottleneck over all cuts, for devices in this order.
double best_from(const cost_profile& profile, const balance_options& options, const std::vector<int>& order,
                 std::size_t position, int first) {
  auto num_layers = static_cast<int>(profile.layers.size());
  auto cost = [&](int last) {
    auto device = order[position];
    auto found = cost_of(profile, options, first, last, position, device);
    auto memory = options.devices[static_cast<std::size_t>(device)].memory_bytes;
    return memory > 0 && found.bytes > memory ? infinity : found.time_s;
  };
  if (position + 1 == order.size()) return cost(num_layers);
  auto best = infinity;
  for (int last = first + 1; last < num_layers; ++last)
    if (may_begin(profile, last))
      best = std::min(best, std::max(cost(last), best_from(profile, options, order, position + 1, last)));
  return best;
}

double brute_force(const cost_profile& profile, const balance_options& options) {
  std::vector<int> order(options.devices.size());
  std::iota(order.begin(), order.end(), 0);
  auto best = infinity;
  do best = std::min(best, best_from(profile, options, order, 0, 0));
  while (std::ranges::next_permutation(order).found);
  return best;
}

double bottleneck(const std::vector<layer_chunk>& chunks) {
  return std::ranges::max_element(chunks, {}, &layer_chunk::time_s)->time_s;
}

}  // namespace

TEST_CASE("layers of different cost are balanced by time, not by number") {
  auto chunks = balance(chain({1, 1, 1, 9, 1, 1}), {.devices = {{}, {}, {}}});
  CHECK(chunks == std::vector<layer_chunk>{{0, 3, 0, 3, 4}, {3, 4, 1, 9, 2}, {4, 6, 2, 2, 3}});
  CHECK(bottleneck(balance(chain({9, 1, 1, 1, 1, 1}), {.devices = {{}, {}}})) == 9);
}

TEST_CASE("the balance is as good as the best of all cuts and orders of devices") {
  int num_that_fit = 0, num_that_do_not = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    auto profile = drawn_profile(random);
    auto most =
        std::ranges::count_if(profile.layers, [](const auto& layer) { return layer.parameter_bytes > 0; });
    auto options = drawn_options(
        random, 1 + static_cast<int>(random() % std::min<unsigned>(4, static_cast<unsigned>(most))));
    auto expected = brute_force(profile, options);
    CAPTURE(seed, options.devices.size(), profile.layers.size(), expected);
    if (expected == infinity) {
      ++num_that_do_not;
      REQUIRE_THROWS_WITH(balance(profile, options), ContainsSubstring("does not fit"));
      continue;
    }
    ++num_that_fit;
    auto chunks = balance(profile, options);
    REQUIRE(chunks.size() == options.devices.size());
    REQUIRE(bottleneck(chunks) == expected);
    int first = 0;
    std::set<int> devices;
    for (std::size_t position = 0; position < chunks.size(); ++position) {
      const auto& chunk = chunks[position];
      auto cost = cost_of(profile, options, chunk.first, chunk.last, position, chunk.device);
      REQUIRE(chunk.first == first);
      REQUIRE(chunk.time_s == cost.time_s);
      REQUIRE(chunk.memory_bytes == cost.bytes);
      REQUIRE(devices.insert(chunk.device).second);
      first = chunk.last;
    }
    REQUIRE(first == static_cast<int>(profile.layers.size()));
    REQUIRE(balance(profile, options) == chunks);
  }
  CHECK(num_that_fit > 200);
  CHECK(num_that_do_not > 10);
}

TEST_CASE("a faster device gets more layers, wherever it stands in the list") {
  auto chunks = balance(chain({3, 3, 3, 3}), {.devices = {{.speed = 1}, {.speed = 3}}});
  CHECK(bottleneck(chunks) == 3);
  CHECK(std::ranges::find(chunks, 1, &layer_chunk::device)->last -
            std::ranges::find(chunks, 1, &layer_chunk::device)->first ==
        3);
}

TEST_CASE("bytes between devices move the cut to where the tensors are small") {
  auto profile = chain({4, 4, 4, 4});
  profile.values[2].bytes = 100;
  CHECK(balance(profile, {.devices = {{}, {}}})[0].last == 2);
  CHECK(balance(profile, {.devices = {{}, {}}, .bytes_per_s = 10})[0].last != 2);
}

TEST_CASE("a value that comes in from an earlier chunk counts once, and the samples do not") {
  auto profile = chain({100, 100, 100, 100});
  profile.values = {{-1, 0, 0, 500}, {0, 0, 1, 10}, {0, 0, 2, 10}, {-1, 0, 3, 500}, {0, 0, 3, 10}};
  auto chunks = balance(profile, {.devices = {{}, {}}, .bytes_per_s = 100});
  // Layer 3 uses the samples beside another value, so both come in.
  CHECK(chunks[1].time_s == 200 + 2 * (10 + 500) / 100.0);
  std::erase_if(profile.values, [](const auto& value) { return value.to == 3; });
  chunks = balance(profile, {.devices = {{}, {}}, .bytes_per_s = 100});
  CHECK(chunks[1].time_s == 200 + 2 * 10 / 100.0);
}

TEST_CASE("latency counts without a bandwidth too") {
  auto profile = chain({1, 1, 1, 1});
  CHECK(balance(profile, {.devices = {{}, {}}, .latency_s = 1})[0].last == 3);
}

TEST_CASE("the optimizer counts once in a step, microbatches each") {
  auto profile = chain({1, 1, 1, 1});
  profile.layers[0].apply_s = 2;
  CHECK(balance(profile, {.devices = {{}, {}}})[0].last == 1);
  auto chunks = balance(profile, {.devices = {{}, {}}, .num_microbatches = 4});
  CHECK(chunks[0].last == 2);
  CHECK(bottleneck(chunks) == 4 * 2 + 2);
}

TEST_CASE("values that come into a chunk take memory as long as activations do") {
  auto profile = chain({1, 1, 1, 1});
  profile.values[2].bytes = 100;
  std::vector<troupe::device_capacity> devices{{.memory_bytes = 50}, {.memory_bytes = 50}};
  auto chunks = balance(profile, {.devices = devices, .kept_microbatches = {2, 1}});
  CHECK(chunks[0].last != 2);
}

TEST_CASE("of placements as fast as each other, one leaves no device almost idle") {
  auto chunks = balance(chain({9, 1, 1, 1, 1, 1, 1}), {.devices = {{}, {}, {}, {}}});
  std::vector<double> times;
  for (const auto& chunk : chunks) times.push_back(chunk.time_s);
  CHECK(times == std::vector<double>{9, 2, 2, 2});
}

TEST_CASE("sixteen devices of different speeds and two hundred layers are balanced") {
  std::vector<double> seconds;
  for (int layer = 0; layer < 200; ++layer) seconds.push_back(1.0 + layer * 37 % 11);
  auto profile = chain(seconds);
  balance_options options{.bytes_per_s = 10};
  double speeds = 0;
  for (int device = 0; device < 16; ++device) {
    options.devices.push_back({.speed = 1 + 0.1 * device});
    speeds += options.devices.back().speed;
  }
  auto total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  auto found = bottleneck(balance(profile, options));
  CHECK(found > total / speeds);
  CHECK(found < 1.1 * total / speeds);
}

TEST_CASE("what fits in no way is refused with by how much, where, and what would") {
  auto profile = chain({1, 1, 1});
  for (auto& layer : profile.layers) layer.activation_bytes = 100;
  balance_options options{.devices = {{.memory_bytes = 150}, {.memory_bytes = 150}},
                          .kept_microbatches = {2, 1}};
  CHECK_THROWS_AS(balance(profile, options), troupe::bad_input);
  // One layer of two microbatches and two of one: 203 and 203 bytes, with a byte that comes in.
  CHECK_THROWS_WITH(balance(profile, options),
                    ContainsSubstring("layers l0 to l0 need 203 bytes on a device that has 150 bytes") &&
                        ContainsSubstring("53 bytes too few") &&
                        ContainsSubstring("53 bytes more for each device would do") &&
                        ContainsSubstring("smaller microbatches"));
  for (auto& device : options.devices) device.memory_bytes += 53;
  CHECK(balance(profile, options)[0].last == 1);
}

TEST_CASE("numbers that cannot be are refused") {
  auto profile = chain({1, 1, 1});
  auto expect = [&profile](const balance_options& options, const std::string& part) {
    CHECK_THROWS_WITH(balance(profile, options), ContainsSubstring(part));
  };
  expect({}, "no devices");
  expect({.devices = {{.speed = 0}}}, "a number above 0");
  expect({.devices = std::vector<troupe::device_capacity>(4)}, "4 devices for 3 layers");
  expect({.devices = {{}, {}}, .kept_microbatches = {1}}, "1 of 2 stages");
  expect({.devices = {{}, {}}, .kept_microbatches = {2, -1}}, "-1 kept microbatches");
  expect({.devices = {{}}, .num_microbatches = 0}, "0 microbatches");
  expect({.devices = {{}}, .latency_s = -1}, "finite numbers from 0 on");
  expect({.devices = {{}, {}}, .latency_s = infinity}, "finite numbers from 0 on");
  expect({.devices = {{}, {}}, .bytes_per_s = infinity}, "finite numbers from 0 on");
  auto large = chain(std::vector<double>(100, 1.0));
  balance_options many;
  for (int device = 0; device < 24; ++device) many.devices.push_back({.speed = 1.0 + device});
  CHECK_THROWS_WITH(balance(large, many), ContainsSubstring("too many to search"));
}
