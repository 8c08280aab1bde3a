#pragma once
#include <map>
#include <vector>

#include "troupe/gradients/factored_gradient.hpp"
#include "troupe/pipeline/detail/parameters/gradient_pieces.hpp"
#include "troupe/pipeline/numeric_options.hpp"
#include "troupe/program/stage_program.hpp"

namespace troupe {

/// The sizes of the two factors that PowerSGD of this rank sends of a parameter's gradient. They have rank 0
/// if it is sent whole: the parameter is not trainable, or not large (piece_layout.hpp), or its factors have
/// more than half as many elements.
low_rank_factors power_sgd_factors_of(const parameter& of, int rank);

/// What one of several replicas sends of a stage's gradients, piece by piece, and what it makes of what comes
/// back, as the numeric_options say. It sends all elements in f32 or 16 bits, or of large gradients the
/// elements of largest magnitude (take_largest) or two factors (factored_gradient), one after the other.
///
/// Not thread-safe.
class compressed_gradients {
 public:
  /// Those of `parameters` that are trainable; they outlive this object. `by_use`: see layout_of.
  compressed_gradients(const numeric_options& numerics, std::vector<named_parameter> parameters,
                       const std::vector<std::size_t>& by_use);

  const gradient_pieces& pieces() const { return pieces_; }
  /// Moves the gradients that are sent as they are to memory from `shared`, once.
  void share_memory(const stage_program::memory_source& shared);
  /// See stage_program::replica_gradients.
  tensor message_of(int piece);
  /// The summed elements of a piece in f32, one part after the other, from what the exchange gave. None if
  /// they come with another piece.
  std::vector<tensor> sums_from(int piece, const std::vector<tensor>& received);
  /// Whether this replica had a gradient of a parameter with pieces of its own, which have left.
  bool had_gradient(std::size_t index) const { return had_gradient_[index]; }
  /// At the end of a step, and of an interrupted one.
  void end_step();

  /// What this replica has not sent yet, and the factors to begin the next step with.
  std::vector<named_tensor> state() const;

 private:
  bool is_first_of_its_parameter(int piece) const;
  bool is_sparse(int piece) const {
    return numerics_.exchange.top_k_gradients > 0 && !pieces_.is_packed(piece);
  }
  factored_gradient* factored(int piece);
  tensor take_largest_of(int piece);
  tensor factor_of(int piece, factored_gradient& factors);

  numeric_options numerics_;
  std::vector<named_parameter> parameters_;
  std::map<std::size_t, factored_gradient> factored_;  ///< by index of the parameter
  gradient_pieces pieces_;
  std::map<std::size_t, tensor> residuals_;  ///< with top_k_gradients, likewise
  bool has_shared_memory_ = false;           ///< share_memory was called
  std::vector<bool> had_gradient_;           ///< [parameters_] in this step
};

}  // namespace troupe
