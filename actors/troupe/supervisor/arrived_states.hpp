#pragma once
#include <cstdint>
#include <map>

#include "troupe/layout/part_id.hpp"
#include "troupe/tensor/tensor.hpp"

namespace troupe {

/// Holds states that peers sent for this node's parts until restore_order asks for them. A state may arrive
/// before the restore_order, and even before the view of its generation. Only states of the newest generation
/// are held.
class arrived_states {
 public:
  void add(std::uint64_t generation, const part_id& part, const tensor& packed);
  /// Undefined if it has not arrived.
  tensor find(std::uint64_t generation, const part_id& part) const;
  void clear() { packed_.clear(); }

 private:
  std::uint64_t generation_ = 0;
  std::map<part_id, tensor> packed_;
};

}  // namespace troupe
