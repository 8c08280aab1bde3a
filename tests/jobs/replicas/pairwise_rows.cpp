#include "jobs/replicas/pairwise_rows.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <tuple>

namespace troupe::testing {
namespace {

/// Factor and value, twice.
using value_pair = std::tuple<std::size_t, int, std::size_t, int>;

std::vector<value_pair> pairs_of(const test_row& row) {
  std::vector<value_pair> pairs;
  for (std::size_t a = 0; a < row.size(); ++a)
    for (std::size_t b = a + 1; b < row.size(); ++b) pairs.emplace_back(a, row[a], b, row[b]);
  return pairs;
}

/// The next combination as in counting; false after the last one.
bool advance(test_row& row, const std::vector<int>& num_values) {
  for (auto factor = row.size(); factor-- > 0;) {
    if (++row[factor] < num_values[factor]) return true;
    row[factor] = 0;
  }
  return false;
}

}  // namespace

std::vector<test_row> all_rows(const std::vector<int>& num_values,
                               const std::function<bool(const test_row&)>& is_allowed) {
  std::vector<test_row> rows;
  test_row next(num_values.size(), 0);
  do {
    if (is_allowed(next)) rows.push_back(next);
  } while (advance(next, num_values));
  return rows;
}

std::vector<test_row> pairwise_rows(const std::vector<test_row>& rows) {
  std::set<value_pair> missing;
  for (const auto& row : rows)
    for (const auto& pair : pairs_of(row)) missing.insert(pair);
  auto num_new = [&missing](const test_row& row) {
    return std::ranges::count_if(pairs_of(row),
                                 [&missing](const value_pair& pair) { return missing.contains(pair); });
  };
  std::vector<test_row> chosen;
  while (!missing.empty()) {
    chosen.push_back(*std::ranges::max_element(rows, {}, num_new));
    for (const auto& pair : pairs_of(chosen.back())) missing.erase(pair);
  }
  return chosen;
}

}  // namespace troupe::testing
