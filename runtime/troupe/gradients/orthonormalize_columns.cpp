#include "troupe/gradients/orthonormalize_columns.hpp"

#include <cmath>
#include <vector>

namespace troupe::gradients {
namespace {

constexpr double min_new_length = 1e-6;

using column = std::vector<double>;

double dot(const column& a, const column& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void make_orthonormal(std::vector<column>& columns) {
  for (std::size_t j = 0; j < columns.size(); ++j) {
    auto& own = columns[j];
    auto before = std::sqrt(dot(own, own));
    for (std::size_t i = 0; i < j; ++i) {
      auto along = dot(columns[i], own);
      for (std::size_t row = 0; row < own.size(); ++row) own[row] -= along * columns[i][row];
    }
    auto length = std::sqrt(dot(own, own));
    bool is_spanned = length <= min_new_length * before;  // false with NaN, which stays
    for (auto& each : own) each = is_spanned ? 0 : each / length;
  }
}

}  // namespace

void orthonormalize_columns(tensor matrix) {
  auto num_columns = static_cast<std::size_t>(matrix.shape()[-1]);
  auto values = matrix.values<float>();
  auto num_rows = values.size() / num_columns;
  std::vector<column> columns(num_columns, column(num_rows));
  for (std::size_t i = 0; i < values.size(); ++i) columns[i % num_columns][i / num_columns] = values[i];
  make_orthonormal(columns);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(columns[i % num_columns][i / num_columns]);
}

}  // namespace troupe::gradients
