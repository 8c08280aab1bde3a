#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "troupe/tensor/device.hpp"

namespace troupe {

class caching_allocator;
enum class host_copy_use : std::uint8_t;

/// An event in the work that is queued on a GPU.
class stream_event {
 public:
  stream_event() = default;
  stream_event(const stream_event&) = delete;
  stream_event& operator=(const stream_event&) = delete;
  virtual ~stream_event() = default;
  /// Whether the GPU has come to it. Throws device_lost.
  virtual bool is_reached() const = 0;
  /// Until it has. Throws device_lost.
  virtual void wait() const = 0;
  /// From `earlier` to this one, both of one GPU, reached, and recorded as timed.
  virtual std::chrono::nanoseconds since(const stream_event& earlier) const = 0;
};

/// The allocator of a device; it lives until the process ends. Throws bad_input if the device does not exist.
caching_allocator& allocator_of(device target);

/// The allocator of this thread's graph capture on the device (captured_step.hpp); null if there is none.
std::shared_ptr<caching_allocator> capture_allocator_of(device target);

/// Copies between any two devices. Returns when CPU memory on either side may be read and written again;
/// copies on a GPU run in stream order.
void copy_bytes(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes);

// For GPUs; implemented in cuda/ or cuda_absent/, as configured, like `num_cuda_devices` and `cuda_version`.
caching_allocator& cuda_allocator_of(int index);
std::shared_ptr<caching_allocator> cuda_capture_allocator_of(int index);
void copy_bytes_cuda(void* to, device to_where, const void* from, device from_where, std::size_t size_bytes);
/// From the CPU to memory of GPU `to_index` that no queued work uses, beside all that is queued there. What
/// is queued later comes after the copy. Returns when `from` has been read, for which it may wait for earlier
/// ones of these copies.
void copy_to_idle_cuda(void* to, int to_index, const void* from, std::size_t size_bytes);
/// To such memory from another GPU, after `computed`. What is queued later on that GPU runs beside the copy:
/// `source` keeps the memory until it is made.
void copy_between_gpus(const stream_event& computed, void* to, int to_index, const void* from, int from_index,
                       std::size_t size_bytes, std::shared_ptr<const void> source);
/// Frees what such copies kept and do not need any more: also done by each of them.
void forget_copied_cuda(int index);
enum class event_timing { none, timed };
/// A timed event in a stream of the GPU that has no work.
std::unique_ptr<stream_event> record_idle_cuda(int index);
/// An event behind what is queued on the GPU by now. Throws std::logic_error while this thread captures.
std::unique_ptr<stream_event> record_cuda(int index, event_timing timing = event_timing::none);
/// Waits for the event, and copies to the CPU while the GPU goes on.
void copy_from_cuda_after(const stream_event& computed, host_copy_use use, void* to, int index,
                          const void* from, std::size_t size_bytes);
void fill_zero_cuda(void* memory, device target, std::size_t size_bytes);
void require_cuda(int index);
std::string cuda_name(int index);
void synchronize_cuda(int index);

}  // namespace troupe
