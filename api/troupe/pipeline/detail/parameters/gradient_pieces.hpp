#pragma once
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "troupe/pipeline/detail/parameters/piece_layout.hpp"

namespace troupe {

/// How the gradients of a stage travel between its replicas (stage_program::replica_gradients). Large ones
/// travel as views of their own memory, in pieces of at most 2 MiB, so that nothing is copied and the first
/// pieces travel while others are computed. All small ones are packed into piece 0. That piece also tells
/// which parameters have a gradient, so that what no replica has a gradient of is not stepped. The lower a
/// piece, the sooner the next forward needs it: over a busy link it goes first (send_queue.hpp). A pure
/// function of the parameters' shapes and their order: the same in all replicas.
class gradient_pieces {
 public:
  /// Those of `parameters` that are trainable; they outlive this object. Indices are those of `parameters`.
  /// `by_use`, `in_two_rounds`: see layout_of.
  explicit gradient_pieces(std::vector<parameter*> parameters, const std::vector<std::size_t>& by_use = {},
                           const std::function<bool(std::size_t index)>& in_two_rounds = nullptr);

  int count() const { return static_cast<int>(layout_.large.size()) + 1; }
  bool is_packed(int piece) const { return piece == 0; }
  /// Indices of the parameters in the packed piece.
  const std::vector<std::size_t>& packed() const { return layout_.small; }
  /// The elements of a piece that is not packed.
  const optim::parameter_part& part_of(int piece) const {
    return layout_.large.at(static_cast<std::size_t>(piece - 1));
  }
  /// The first and the number of the pieces that a parameter has for itself; 0 for a small one.
  std::pair<int, int> pieces_of(const parameter& whose) const;

  /// f32 [n] in CPU memory. Of a parameter without gradient: zeros, which are written to its gradient.
  tensor elements_of(int piece) const;
  /// Copies the summed elements of a piece, one part after the other, to the gradients. Of the packed piece
  /// also to has_gradient, of all parameters.
  void set_elements(int piece, const std::vector<tensor>& parts) const;

 private:
  tensor pack() const;
  void unpack(const tensor& packed) const;

  std::vector<parameter*> parameters_;
  piece_layout layout_;
  std::vector<parameter*> trainable_;
  std::int64_t num_packed_ = 0;
};

}  // namespace troupe
