#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "troupe/tensor/tensor.hpp"

namespace troupe {

class stream_event;

/// Copies of one use are made one after the other, beside those of the other: messages must not wait until
/// the whole state of a stage is copied.
enum class host_copy_use : std::uint8_t { message, state };

/// A copy of a tensor to the memory of the CPU, made when its elements are computed, while the device goes on
/// with what is queued after them. On the CPU it is the tensor itself.
class async_host_copy {
 public:
  /// What is queued for the elements by now, on this thread or by one that this one has waited for, comes
  /// before the copy. The elements must not change until it is taken. Throws std::logic_error while this
  /// thread captures (captured_step.hpp).
  explicit async_host_copy(tensor source, host_copy_use use = host_copy_use::message);
  async_host_copy(async_host_copy&&) noexcept;
  async_host_copy& operator=(async_host_copy&&) noexcept;
  ~async_host_copy();

  /// Whether take() need not wait for the elements. Throws device_lost.
  bool is_ready() const;
  /// Waits for the elements, and copies them. Any thread may call it, once. Throws device_lost.
  tensor take();
  /// The same into memory of size_bytes().
  void take_into(std::span<std::byte> memory);

 private:
  tensor source_;
  host_copy_use use_;
  std::unique_ptr<stream_event> computed_;  ///< when the elements are; null on the CPU
};

}  // namespace troupe
