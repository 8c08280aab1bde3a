#include "troupe/gradients/low_rank_factors.hpp"

#include <algorithm>

#include "troupe/random/fill.hpp"

namespace troupe::gradients {

low_rank_factors factors_of(const shape& extents, int wanted_rank, double min_compression_rate) {
  if (extents.rank() < 2 || extents.num_elements() == 0) return {};
  low_rank_factors result{extents[0], extents.num_elements() / extents[0]};
  auto rank = std::min({static_cast<std::int64_t>(wanted_rank), result.rows, result.columns});
  auto sent = static_cast<double>((result.rows + result.columns) * rank);
  if (sent * min_compression_rate <= static_cast<double>(extents.num_elements())) result.rank = rank;
  return result;
}

tensor initial_q(const low_rank_factors& factors, std::uint64_t seed, const std::string& parameter) {
  auto q = tensor::empty({factors.columns, factors.rank});
  fill_normal(q, 0, 1, seed, "power_sgd.q/" + parameter);
  return q;
}

void replace_zero_columns(tensor q, const tensor& initial) {
  auto values = q.values<float>();
  auto begin = initial.values<float>();
  auto rank = static_cast<std::size_t>(q.shape()[-1]);
  for (std::size_t column = 0; column < rank; ++column) {
    bool is_zero = true;
    for (auto i = column; i < values.size(); i += rank) is_zero = is_zero && values[i] == 0;
    for (auto i = column; is_zero && i < values.size(); i += rank) values[i] = begin[i];
  }
}

}  // namespace troupe::gradients
