#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "troupe/transport/plane.hpp"

namespace troupe {

/// Writes the heads of the tensors that go to one peer in one generation: whole, or repeated where it can.
class head_writer {
 public:
  /// `settings` must outlive it.
  head_writer(const plane_settings& settings, std::uint64_t generation, int to_rank,
              const receiver_nonce& receiver);

  /// In the order in which they are sent. Throws std::invalid_argument for more than 255 extents.
  void write(const tensor_tag& tag, const std::optional<authentication_code>& body_code, const tensor& value,
             std::vector<std::byte>& head);
  /// The last one did not leave: nothing repeats it.
  void forget() { pattern_.reset(); }

 private:
  /// The last small tensor whose head was whole.
  struct pattern {
    std::uint64_t sequence = 0;
    tensor_tag tag;
    dtype type = dtype::f32;
    shape extents;
  };
  bool is_repeated(const tensor_tag& tag, const tensor& value) const;

  const plane_settings* settings_;
  std::uint64_t generation_;
  std::uint32_t to_rank_;
  authentication_code code_;  ///< of the connection
  frame_authenticator key_;   ///< of heads that are not private
  std::uint64_t sequence_ = 0;
  std::optional<pattern> pattern_;
};

}  // namespace troupe
