#include "jobs/replicas/pairwise_rows.hpp"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>

using namespace troupe::testing;

namespace {

bool has_pair(const std::vector<test_row>& rows, const test_row& from, std::size_t a, std::size_t b) {
  return std::ranges::any_of(rows,
                             [&](const test_row& row) { return row[a] == from[a] && row[b] == from[b]; });
}

/// Each pair of values that is in one of `all` is in one of `rows`, which are of `all`.
void check_covered(const std::vector<test_row>& rows, const std::vector<test_row>& all) {
  for (const auto& row : rows) CHECK(std::ranges::count(all, row) == 1);
  for (const auto& row : all)
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b) REQUIRE(has_pair(rows, row, a, b));
}

bool everything(const test_row&) { return true; }

}  // namespace

TEST_CASE("all combinations come in the order of counting, without those that are not allowed",
          "[pairwise_rows]") {
  CHECK(all_rows({2, 2}, everything) == std::vector<test_row>{{0, 0}, {0, 1}, {1, 0}, {1, 1}});
  CHECK(all_rows({2, 2}, [](const test_row& row) { return row[0] != row[1]; }) ==
        std::vector<test_row>{{0, 1}, {1, 0}});
  CHECK(all_rows({3, 2, 4}, everything).size() == 24);
}

TEST_CASE("few rows have all pairs of values of two factors", "[pairwise_rows]") {
  auto all = all_rows({4, 3, 3, 2, 2}, everything);
  auto rows = pairwise_rows(all);
  check_covered(rows, all);
  CHECK(rows.size() >= 12);  // the pairs of the first two
  CHECK(rows.size() <= 18);
  auto few = rows;
  few.pop_back();
  CHECK(std::ranges::any_of(all, [&](const test_row& row) {  // each row is needed
    for (std::size_t a = 0; a < row.size(); ++a)
      for (std::size_t b = a + 1; b < row.size(); ++b)
        if (!has_pair(few, row, a, b)) return true;
    return false;
  }));
  CHECK(pairwise_rows(all) == rows);
}

TEST_CASE("pairs that no allowed row has are not asked for", "[pairwise_rows]") {
  auto all = all_rows({3, 3, 3}, [](const test_row& row) { return row[0] <= row[1] && row[1] != row[2]; });
  auto rows = pairwise_rows(all);
  check_covered(rows, all);
  CHECK(rows.size() < all.size());
  CHECK(pairwise_rows({}).empty());
}
