#include "bench/measure/spread.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe::bench;

TEST_CASE("a spread has the quantiles of the values in any order") {
  auto of = spread_of({5, 1, 4, 2, 3});
  CHECK(of.count == 5);
  CHECK(of.smallest == 1);
  CHECK(of.lower_quartile == 2);
  CHECK(of.median == 3);
  CHECK(of.upper_quartile == 4);
  CHECK(of.largest == 5);
}

TEST_CASE("the spread of one value is that value, and of none is zero") {
  CHECK(spread_of({7}).smallest == 7);
  CHECK(spread_of({7}).largest == 7);
  CHECK(spread_of({}).count == 0);
  CHECK(spread_of({}).median == 0);
}

TEST_CASE("a spread as text says median, least and most, scaled") {
  CHECK(to_text(spread_of({0.001, 0.002, 0.004}), 1e3, 1) == "2.0 [1.0..4.0]");
}

TEST_CASE("a spread as JSON has every quantile and the number of values") {
  CHECK(to_json(spread_of({1, 2, 3})).dump() ==
        R"({"median":2.0,"p25":2.0,"p75":3.0,"min":1.0,"max":3.0,"n":3})");
}
