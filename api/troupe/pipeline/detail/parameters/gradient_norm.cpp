#include "troupe/pipeline/detail/parameters/gradient_norm.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "troupe/ops/reduction.hpp"

namespace troupe::detail {

tensor gradient_norms(std::span<const indexed_parameter> parameters) {
  std::vector<std::int64_t> rows;
  for (const auto& [index, target] : parameters) {
    target->wait_ready();
    double norm = target->needs_step() ? global_norm(std::span(&target->gradient(), 1)) : 0;
    rows.insert(rows.end(), {index, std::bit_cast<std::int64_t>(norm)});
  }
  if (rows.empty()) rows = {0, 0};  // tensors that travel have elements
  auto count = static_cast<std::int64_t>(rows.size() / 2);
  return tensor::from(rows, {count, 2});
}

double combined_norm(const std::vector<tensor>& norms) {
  std::vector<std::pair<std::int64_t, double>> all;
  for (const auto& each : norms) {
    if (each.dtype() != dtype::i64 || each.shape().rank() != 2 || each.shape()[1] != 2)
      throw std::runtime_error("expected the norms of a stage's gradients, i64[n, 2], got " + describe(each));
    auto rows = each.values<std::int64_t>();
    for (std::size_t i = 0; i < rows.size(); i += 2)
      all.emplace_back(rows[i], std::bit_cast<double>(rows[i + 1]));
  }
  std::ranges::stable_sort(all, {}, &std::pair<std::int64_t, double>::first);
  double sum = 0;
  for (const auto& [index, norm] : all) sum += norm * norm;
  return std::sqrt(sum);
}

}  // namespace troupe::detail
