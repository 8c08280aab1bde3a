#pragma once
#include <cstdint>

#include "troupe/data_parallel/hooks/compressed_hook.hpp"

namespace troupe {

struct power_sgd_options {
  /// Rank of the low-rank factors, >= 1. Larger: closer to the gradient, and more traffic.
  int rank = 4;
  /// A matrix is compressed only if its factors have at least this many times fewer elements, >= 1 (as in
  /// PyTorch's PowerSGDState). Other parameters are all-reduced uncompressed.
  double min_compression_rate = 2;
  /// Number of first steps without compression: gradients change the most there.
  std::int64_t dense_steps = 0;
  /// Seed of the random initial Q.
  std::uint64_t seed = 0;
};

/// PowerSGD: compresses each gradient matrix to two factors of low rank. Vogels, Karimireddy, Jaggi 2019,
/// "PowerSGD", algorithms 1 and 2, with warm start and error feedback. A parameter with several axes is
/// treated as a matrix [M, N] whose rows are its first axis. For each replica i with gradient G_i and
/// residual E_i, and Q [N, r] from the step before (random in the first one):
///
///     M_i = G_i + E_i,  P = sum over i of M_i Q, orthonormalised,  Q_i = M_i' P,  Q = sum over i of Q_i
///     the result is P Q', and E_i = M_i - P Q_i'
///
/// so that no part of a gradient is lost: E_i carries what was not sent to the next step. Both sums are
/// all-reduced in f32 in the fixed tree over replicas, so the bits do not depend on which member hosts which
/// replica. A gradient that is not finite gives a result that is not finite and leaves Q and E unchanged. E
/// contains the loss scale: change that scale rarely. Gradients must be in CPU memory.
///
///     replicated.register_comm_hook(std::make_shared<power_sgd>(power_sgd_options{.rank = 2}));
///
/// state() has E of each replica, Q (the same on all members) and the number of steps.
class power_sgd : public compressed_hook {
 public:
  /// Throws std::invalid_argument naming the option that is out of its range.
  explicit power_sgd(const power_sgd_options& options = {});

 private:
  std::vector<segment> segments_of(const gradient_bucket& bucket, std::size_t num_compressors) const override;

  power_sgd_options options_;
};

}  // namespace troupe
