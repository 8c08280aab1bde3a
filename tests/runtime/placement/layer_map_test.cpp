#include "troupe/placement/layer_map.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "troupe/error/errors.hpp"

using Catch::Matchers::ContainsSubstring;
using troupe::bad_input;
using troupe::devices_of_layers;
using troupe::layer_run;

namespace {

const std::vector<std::string> model = {"embed", "h.0",        "h.1",       "h.2",
                                        "h.3",   "norm.scale", "norm.bias", "head"};

}  // namespace

TEST_CASE("layers are placed by name, by range without its end, and by the beginning of their names") {
  CHECK(devices_of_layers({{"embed", 0}, {"h.0..3", 1}, {"h.3", 0}, {"norm", 2}, {"head", 2}}, model) ==
        std::vector{0, 1, 1, 1, 0, 2, 2, 2});
  CHECK(devices_of_layers({{"0..2", 1}, {"2", 0}}, {"0", "1", "2"}) == std::vector{1, 1, 0});
  CHECK(troupe::names_in("a.b.9..11") == std::vector<std::string>{"a.b.9", "a.b.10"});
  CHECK(troupe::names_in("a.b") == std::vector<std::string>{"a.b"});
}

TEST_CASE("successive layers of a device are one run, and a device may have several runs") {
  CHECK(troupe::runs_of({0, 0, 1, 0, 0}) == std::vector<layer_run>{{0, 2, 0}, {2, 3, 1}, {3, 5, 0}});
  CHECK(troupe::runs_of({}).empty());
}

TEST_CASE("maps that do not place each layer once are refused with the layers and what to do") {
  auto expect = [](const std::vector<troupe::placed_layers>& map, auto... parts) {
    CHECK_THROWS_AS(devices_of_layers(map, model), bad_input);
    CHECK_THROWS_WITH(devices_of_layers(map, model),
                      (ContainsSubstring("device map: ") && ... && ContainsSubstring(parts)));
  };
  expect({{"embed", 0}, {"h.0..5", 0}}, "no layer 'h.4'", "'h.0..5' (device 0)", "embed, h.0");
  expect({{"tail", 0}}, "no layer 'tail'");
  expect({{"h", 0}, {"h.3", 1}}, "h.3 is placed by 'h' (device 0) and by 'h.3' (device 1)", "Place it once");
  expect({{"embed", 0}, {"h.0..3", 1}, {"norm", 1}, {"head", 0}}, "no device for h.3.",
         "a range is exclusive");
  expect({}, "no device for embed, h.0");
  expect({{"embed", -1}}, "'embed' (device -1)", "from 0 on");
  expect({{"embed", 0}, {"h", 2}, {"norm", 2}, {"head", 2}}, "no layer is on device 1", "device 2",
         "without gaps");
}

TEST_CASE("what is no range is refused with the form of one") {
  for (const auto* text :
       {"h.3..3", "h.3..", "h...3", "..", "h.a..b", "h.0..99999999", "h.-1..2", "h.1..2.5"}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(troupe::names_in(text),
                      ContainsSubstring("is no range") && ContainsSubstring("blocks.0..6"));
  }
  CHECK_THROWS_WITH(troupe::names_in(""), ContainsSubstring("an empty name"));
}
