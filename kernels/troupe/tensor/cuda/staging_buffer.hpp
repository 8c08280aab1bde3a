#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace troupe {

/// Pinned memory between one GPU and the CPU's ordinary memory, in slots taken in turn: while the GPU copies
/// from or to some of them, the CPU fills or empties others. Thread-safe. The GPU is the current device of
/// the calling thread.
class staging_buffer {
 public:
  explicit staging_buffer(cudaStream_t stream) : stream_(stream) {}
  ~staging_buffer();
  staging_buffer(const staging_buffer&) = delete;
  staging_buffer& operator=(const staging_buffer&) = delete;

  /// Returns when `from` has been read; the rest is queued in the stream.
  void to_gpu(std::byte* to, const std::byte* from, std::size_t size_bytes);
  /// Returns when the bytes are in `to`.
  void from_gpu(std::byte* to, const std::byte* from, std::size_t size_bytes);

 private:
  static constexpr std::size_t num_slots = 8, slot_bytes = std::size_t{1} << 20;

  struct slot {
    slot();
    ~slot();
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;

    std::byte* memory = nullptr;
    cudaEvent_t done = nullptr;  // the GPU's last copy from or to it
  };
  slot& slot_at(std::size_t turn) { return slots_[turn % num_slots]; }

  std::mutex mutex_;
  cudaStream_t stream_;
  std::array<slot, num_slots> slots_;
  std::size_t turn_ = 0;
};

}  // namespace troupe
