#pragma once
#include <functional>
#include <vector>

namespace troupe::testing {

/// The value that each factor of a test has, by index.
using test_row = std::vector<int>;

/// All combinations of values that `is_allowed` accepts, in ascending order. `num_values`: of each factor.
std::vector<test_row> all_rows(const std::vector<int>& num_values,
                               const std::function<bool(const test_row&)>& is_allowed);

/// Some of these rows, in which each two factors have all pairs of values that they have in any of them
/// (pairwise testing, a covering array of strength two). A fault that shows where two values meet, shows in
/// one of them. Greedy: each row is the first of those with the most new pairs. A pure function.
std::vector<test_row> pairwise_rows(const std::vector<test_row>& rows);

}  // namespace troupe::testing
