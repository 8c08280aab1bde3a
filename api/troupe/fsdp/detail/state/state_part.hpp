#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/fsdp/detail/sharded_model.hpp"
#include "troupe/optim/optimizer.hpp"

namespace troupe::detail {

/// A tensor of a state, or consecutive elements of one.
struct held_tensor {
  enum class kind_of : std::uint8_t { weight, optimizer, buffer };
  kind_of kind = kind_of::weight;
  std::string name;
  std::optional<shape> whole = {};  ///< of a piece: the shape of all elements
  std::int64_t first = 0;           ///< of a piece: its first element
  tensor value = {};
};

/// What this member holds, in place: its pieces' weights and optimizer state, and, with `buffers`, the
/// model's.
std::vector<held_tensor> held_weights(const sharded_model& model);
std::vector<held_tensor> held_state(const sharded_model& model, const optim::optimizer_state& optimizer);
std::vector<held_tensor> held_buffers(nn::Module& model);

/// The tensors in bytes that tell what they are, u8 [n] on the CPU.
tensor pack(const std::vector<held_tensor>& held);
/// Views of such bytes. Throws std::runtime_error for bytes of another version or that are cut off.
std::vector<held_tensor> unpack(const tensor& bytes);

/// Copies elements of `from` to those of `to` that they are; returns how many elements of `to` that was.
std::int64_t copy_elements(const held_tensor& from, held_tensor& to);

}  // namespace troupe::detail
