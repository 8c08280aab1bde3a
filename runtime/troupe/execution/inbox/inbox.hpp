#pragma once
#include <map>
#include <optional>
#include <tuple>

#include "troupe/tensor/tensor.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::execution {

/// Tensors that arrived before the action that needs them, by tag. Tensors of older generations are dropped
/// and counted; those of newer generations and later steps are held until the device reaches them.
class inbox {
 public:
  /// Bound of held tensors; far above what any plan sends within the granted steps.
  static constexpr std::size_t max_held = std::size_t{1} << 20;
  /// Throws std::logic_error if max_held tensors are held, or if a tensor with this tag is held already.
  void put(const transport::tensor_tag& tag, tensor value);
  bool has(const transport::tensor_tag& tag) const { return held_.contains(key_of(tag)); }
  std::size_t num_held() const { return held_.size(); }
  std::optional<tensor> take(const transport::tensor_tag& tag);
  /// Forgets everything older than `generation`, and drops such tensors from now on.
  void begin_generation(std::uint64_t generation);
  /// Forgets what came for steps before `step` of a call, and for the calls before.
  void forget_before(std::uint32_t call, std::uint64_t step);
  std::uint64_t num_stale() const { return num_stale_; }

 private:
  /// Compared generation first, so that tensors of older generations are a prefix of the map.
  using key =
      std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, transport::tensor_role, layout::mesh_axis,
                 std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  static key key_of(const transport::tensor_tag& tag) {
    return {tag.generation, tag.call,       tag.step, tag.role,    tag.axis,
            tag.stage,      tag.microbatch, tag.port, tag.replica, tag.slice};
  }
  std::map<key, tensor> held_;
  std::uint64_t generation_ = 0;
  std::uint64_t num_stale_ = 0;
};

}  // namespace troupe::execution
