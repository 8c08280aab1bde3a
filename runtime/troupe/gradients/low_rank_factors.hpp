#pragma once
#include <cstdint>
#include <string>

#include "troupe/tensor/tensor.hpp"

namespace troupe::gradients {

/// The sizes of PowerSGD's two factors of a gradient matrix: P [rows, rank] and Q [columns, rank].
struct low_rank_factors {
  std::int64_t rows = 0, columns = 0;
  std::int64_t rank = 0;  ///< 0: the matrix is sent whole
};

/// Of a parameter with these extents, whose first axis are the rows. The rank is the wanted one, or that of
/// the matrix where that is less; it is 0 unless there are at least two axes and the factors have at least
/// `min_compression_rate` times fewer elements.
low_rank_factors factors_of(const shape& extents, int wanted_rank, double min_compression_rate);

/// The Q of the first step, f32 [columns, rank]: random, by the parameter's name.
tensor initial_q(const low_rank_factors& factors, std::uint64_t seed, const std::string& parameter);

/// Replaces zero columns of Q by their initial values, since they would stay zero.
void replace_zero_columns(tensor q, const tensor& initial);

}  // namespace troupe::gradients
