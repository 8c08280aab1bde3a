#include "troupe/data/gather.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <vector>

using troupe::gather_rows;
using troupe::tensor;

TEST_CASE("rows are copied in the order asked for") {
  auto source = tensor::from(std::vector<std::int32_t>{0, 1, 10, 11, 20, 21}, {3, 2});
  std::vector<std::int64_t> wanted{2, 0, 2};
  auto rows = gather_rows(source, wanted);
  CHECK(troupe::describe(rows) == "i32[3, 2]");
  auto values = rows.values<std::int32_t>();
  CHECK(std::vector<std::int32_t>(values.begin(), values.end()) ==
        std::vector<std::int32_t>{20, 21, 0, 1, 20, 21});
  source.values<std::int32_t>()[4] = 99;
  CHECK(rows.values<std::int32_t>()[0] == 20);
  CHECK(gather_rows(source, {}).extents() == troupe::shape{0, 2});
}

TEST_CASE("rows that are not there are refused") {
  auto source = tensor::zeros({3, 2});
  for (std::int64_t index : {-1, 3}) {
    std::vector<std::int64_t> wanted{0, index};
    CHECK_THROWS_AS(gather_rows(source, wanted), std::invalid_argument);
  }
  CHECK_THROWS_AS(gather_rows(tensor::zeros({}), {}), std::invalid_argument);
}
