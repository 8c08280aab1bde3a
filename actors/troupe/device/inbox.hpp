#pragma once
#include <map>
#include <optional>
#include <tuple>

#include "troupe/transport/transport.hpp"

namespace troupe {

/// Tensors that have come before their action, by tag. Older generations are dropped and counted, newer ones
/// and later steps are held until the device gets there.
class inbox {
 public:
  /// Above what any plan makes within a window of steps.
  static constexpr std::size_t most_held = std::size_t{1} << 20;
  /// Throws std::logic_error if there are most_held, or if the same tensor came before in this generation and
  /// was not taken.
  void put(const tensor_tag& tag, tensor value);
  bool has(const tensor_tag& tag) const { return held_.contains(key_of(tag)); }
  std::optional<tensor> take(const tensor_tag& tag);
  /// Forgets everything older than `generation`, and drops such tensors from now on.
  void begin_generation(std::uint64_t generation);
  std::uint64_t num_stale() const { return num_stale_; }

 private:
  /// In the order of comparison: generation first, so that old ones are a prefix.
  using key =
      std::tuple<std::uint64_t, std::uint32_t, std::uint64_t, tensor_role, std::uint32_t, std::uint32_t>;
  static key key_of(const tensor_tag& tag) {
    return {tag.generation, tag.call, tag.step, tag.role, tag.stage, tag.microbatch};
  }
  std::map<key, tensor> held_;
  std::uint64_t generation_ = 0;
  std::uint64_t num_stale_ = 0;
};

}  // namespace troupe
