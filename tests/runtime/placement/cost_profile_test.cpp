#include "troupe/placement/cost_profile.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::bad_input;
using troupe::profile_from_json;

namespace {

troupe::cost_profile some_profile() {
  return {.microbatch_samples = 32,
          .layers = {{.name = "a", .forward_s = 0.1 + 0.2, .parameter_bytes = std::uint64_t{1} << 52},
                     {.name = "b",
                      .forward_s = 1e-9,
                      .input_gradient_s = 2,
                      .weight_gradient_s = 3,
                      .apply_s = 4,
                      .parameter_bytes = 5,
                      .gradient_bytes = 6,
                      .optimizer_bytes = 7,
                      .buffer_bytes = 8,
                      .activation_bytes = 9,
                      .passes = {10, 11, -12, 13, -14, 15}}},
          .values = {{troupe::layer_value::model_input, 0, 0, 10}, {0, 1, 1, 11}},
          .shared = {{0, 1, 5, 6}}};
}

}  // namespace

TEST_CASE("a profile that was written is read again as it was") {
  CHECK(profile_from_json(to_json(some_profile())) == some_profile());
}

TEST_CASE("files that are no profile of this version are refused") {
  CHECK_THROWS_AS(profile_from_json(""), bad_input);
  CHECK_THROWS_WITH(profile_from_json("{\"layers\": []}"), ContainsSubstring("got another one"));
  CHECK_THROWS_WITH(profile_from_json("[1]"), ContainsSubstring("got another one"));
  auto text = to_json(some_profile());
  auto with = [&text](const std::string& from, const std::string& to) {
    auto changed = text;
    return changed.replace(changed.find(from), from.size(), to);
  };
  CHECK_THROWS_WITH(
      profile_from_json(with("\"version\": 2", "\"version\": 1")),
      ContainsSubstring("expected version 2, got 1") && ContainsSubstring("measure the model again"));
  CHECK_THROWS_AS(profile_from_json(with("\"apply_s\": 4.0", "\"apply_s\": \"long\"")), bad_input);
  CHECK_THROWS_WITH(profile_from_json(with("\"apply_s\": 4.0", "\"apply_s\": -4.0")),
                    ContainsSubstring("layer b, got -4"));
  for (const auto* number : {"-9", "9.5", "18446744073709551616", "true"})
    CHECK_THROWS_WITH(
        profile_from_json(with("\"activation_bytes\": 9", "\"activation_bytes\": " + std::string(number))),
        ContainsSubstring("expected a whole number as activation_bytes, got "));
  CHECK_THROWS_WITH(profile_from_json(with("_change_bytes\": -14", "_change_bytes\": 18446744073709551602")),
                    ContainsSubstring("got 18446744073709551602"));
  CHECK_THROWS_WITH(profile_from_json(with("\"version\": 2", "\"version\": " + std::string(1'000'000, '['))),
                    ContainsSubstring("nests deeper than 16"));
  CHECK_THROWS_WITH(profile_from_json(with("\"to\": 1", "\"to\": 4294967297")),
                    ContainsSubstring("expected a whole number as to"));
  CHECK_THROWS_WITH(profile_from_json(with("\"first\": 0", "\"first\": 1")),
                    ContainsSubstring("got one of 5 bytes of layers 1 and 1"));
  CHECK_THROWS_WITH(profile_from_json(with("\"optimizer_bytes\": 6\n", "\"optimizer_bytes\": 8\n")),
                    ContainsSubstring("no more than it has"));
  CHECK_THROWS_WITH(profile_from_json(with("\"name\": \"b\"", "\"name\": \"a\"")), ContainsSubstring("'a'"));
}

TEST_CASE("profiles with numbers that cannot be are refused") {
  auto expect = [](auto change, const std::string& part) {
    auto profile = some_profile();
    change(profile);
    CHECK_THROWS_WITH(check_profile(profile), ContainsSubstring(part));
  };
  expect([](auto& p) { p.layers.clear(); }, "no layers");
  expect([](auto& p) { p.microbatch_samples = 0; }, "at least 1 sample");
  expect([](auto& p) { p.layers[0].name.clear(); }, "a name of its own");
  expect([](auto& p) { p.layers[1].forward_s = std::numeric_limits<double>::infinity(); }, "layer b");
  expect([](auto& p) { p.layers[1].parameter_bytes = std::uint64_t{1} << 52; },
         "less than 2^53 bytes in all");
  expect([](auto& p) { p.values[1].to = 2; }, "to 2");
  expect([](auto& p) { p.values[1].from = 1; }, "to a later one");
}
