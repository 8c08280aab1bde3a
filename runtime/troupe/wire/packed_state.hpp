#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::wire {

/// A pool of memory for packed states, so that a state copy causes no page faults.
/// Thread-safe. Tensors made from it may outlive it.
class packed_state_pool {
 public:
  packed_state_pool() : shelf_(std::make_shared<shelf>()) {}
  /// A u8 tensor [size_bytes]; its memory returns to the pool when the last handle goes.
  tensor take(std::size_t size_bytes);

 private:
  struct shelf {
    std::mutex mutex;
    std::vector<tensor> free;
  };
  std::shared_ptr<shelf> shelf_;
};

/// Copies tensors into one u8 tensor [num_bytes]: a table of names, dtypes and shapes, then the elements,
/// 64-byte aligned, zeros between them. One pass over the memory; this is what a stage copies at a step
/// boundary and what travels to peers.
tensor pack_state(const std::vector<named_tensor>& state, packed_state_pool& pool);

/// The tensors in a packed state, sharing its memory, in the order they were packed.
/// Throws std::runtime_error for bytes that pack_state did not make.
std::vector<named_tensor> unpack_state(const tensor& packed);

}  // namespace troupe::wire
