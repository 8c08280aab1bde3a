#include "bench/measure/two_speeds.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe::bench;

TEST_CASE("times of two speeds are parted in the widest gap between them") {
  auto parting = parting_of({21, 10, 11, 10.5, 20, 22, 10, 21, 11});
  REQUIRE(parting);
  CHECK((*parting > 11 && *parting < 20));
}

TEST_CASE("times that hardly differ are of one speed") {
  CHECK_FALSE(parting_of({10, 11, 12, 13, 10, 11, 12, 13, 10, 11}));
}

TEST_CASE("one late time among many is no speed of its own") {
  CHECK_FALSE(parting_of({10, 10, 11, 10, 11, 10, 11, 10, 11, 90}));
}

TEST_CASE("a few times say nothing of speeds") { CHECK_FALSE(parting_of({10, 20, 10, 20, 10, 20, 10})); }
