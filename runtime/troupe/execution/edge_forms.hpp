#pragma once
#include <map>

#include "troupe/schedule/stage_graph.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe::execution {

/// The dtype and shape of the tensors of each edge in one step, which all its microbatches and their
/// gradients have. They are agreed on with the first tensor, and again in each step: the last batch may be
/// smaller.
class edge_forms {
 public:
  void begin_step() { forms_.clear(); }
  /// Throws std::logic_error, naming the edge, what was expected and what came, for a tensor of another form
  /// than that of the microbatches before, and for one that is undefined.
  void agree_on(const schedule::edge& passed, const tensor& activation, int microbatch);
  /// The same for a gradient, which may be undefined. Its activation has passed before.
  void require_form(const schedule::edge& passed, const tensor& gradient, int microbatch) const;

 private:
  struct form {
    dtype type;
    shape extents;
    bool fits(const tensor& value) const { return value.dtype() == type && value.shape() == extents; }
  };
  std::map<schedule::edge, form> forms_;
};

}  // namespace troupe::execution
