#pragma once
#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <mutex>

namespace troupe {

/// Copies between pageable CPU memory and a GPU through a ring of pinned slots: while the GPU copies some
/// slots, the CPU fills or empties others. Thread-safe. The GPU must be the calling thread's current device.
class staging_buffer {
 public:
  explicit staging_buffer(cudaStream_t stream) : stream_(stream) {}
  ~staging_buffer();
  staging_buffer(const staging_buffer&) = delete;
  staging_buffer& operator=(const staging_buffer&) = delete;

  /// Returns when `from` has been read; the copies to the GPU are queued in the stream.
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
    cudaEvent_t done = nullptr;  // recorded after the GPU's last copy from or to the slot
  };
  static void wait_for(const slot& one);
  slot& slot_at(std::size_t turn) { return slots_[turn % num_slots]; }

  std::mutex mutex_;
  cudaStream_t stream_;
  std::array<slot, num_slots> slots_;
  std::size_t turn_ = 0;
};

}  // namespace troupe
