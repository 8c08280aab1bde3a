#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "troupe/contents/tensor_contents.hpp"
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

/// Tensors, and which elements of the model's tensors each of them has.
struct unpacked_state {
  std::vector<named_tensor> tensors;
  std::vector<tensor_contents> contents;  ///< [tensors]
};

/// Copies tensors into one u8 tensor [num_bytes]: a table of what they hold, then the elements, 64-byte
/// aligned, zeros between them. One pass over the memory; this is what a stage copies at a step boundary and
/// what travels to peers. `contents` [state]: those of each, in its stored_shape. Throws
/// std::invalid_argument for others.
tensor pack_state(const std::vector<named_tensor>& state, const std::vector<tensor_contents>& contents,
                  packed_state_pool& pool);
/// The same where the elements come from elsewhere: `copy` writes those of state[index] to `to`, in order,
/// for all of them.
using element_copy = std::function<void(std::size_t index, std::span<std::byte> to)>;
tensor pack_state(const std::vector<named_tensor>& state, const std::vector<tensor_contents>& contents,
                  packed_state_pool& pool, const element_copy& copy);
/// The same for whole tensors.
tensor pack_state(const std::vector<named_tensor>& state, packed_state_pool& pool);

/// What is in a packed state, sharing its memory, in the order in which it was packed. Throws
/// std::runtime_error for bytes that pack_state did not make.
unpacked_state unpack_contents(const tensor& packed);
/// The tensors alone.
std::vector<named_tensor> unpack_state(const tensor& packed);

}  // namespace troupe::wire
