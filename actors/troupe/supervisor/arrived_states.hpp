#pragma once
#include <cstdint>
#include <map>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// States that peers sent for lost stages of this node, until they are needed: one may come before the order
/// to restore it, and even before the view of its generation. Those of the newest generation only.
class arrived_states {
 public:
  void add(std::uint64_t generation, int stage, const tensor& packed);
  /// An undefined tensor if it has not come.
  tensor find(std::uint64_t generation, int stage) const;
  void clear() { packed_.clear(); }

 private:
  std::uint64_t generation_ = 0;
  std::map<int, tensor> packed_;
};

}  // namespace troupe
