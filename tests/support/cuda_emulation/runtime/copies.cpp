// Copies and fills. Both ranges are checked when the copy is queued, and again when it runs.
#include <cstring>
#include <string>
#include <utility>

#include "machine.hpp"

namespace troupe::emulation {
namespace {

/// A rectangle of bytes in the memory of one GPU, or in pinned memory.
struct area {
  std::string name;  ///< for messages
  int gpu;
  std::byte* first;
  std::size_t pitch_bytes, width_bytes, height;

  void require_there() const {
    the_machine().blocks.require_range(name, gpu, first, pitch_bytes * (height - 1) + width_bytes);
  }
  std::byte* row(std::size_t index) const { return first + index * pitch_bytes; }
};

area line(std::string name, int gpu, const void* first, std::size_t size_bytes) {
  auto* bytes = const_cast<std::byte*>(static_cast<const std::byte*>(first));
  return {std::move(name), gpu, bytes, size_bytes, size_bytes, 1};
}

bool overlap(const area& a, const area& b) {
  if (a.height > 1) return false;  // the project copies no rows within one tensor
  return a.first < b.first + b.width_bytes && b.first < a.first + a.width_bytes;
}

cudaError_t queue_copy(cudaStream_t stream, const area& to, const area& from) {
  std::lock_guard lock(the_machine().mutex);
  to.require_there();
  from.require_there();
  if (overlap(to, from)) refuse(to.name + ": expected ranges apart from each other, got two that overlap");
  return add_work(checked(stream), [to, from] {
    {
      std::lock_guard again(the_machine().mutex);
      to.require_there();
      from.require_there();
    }
    for (std::size_t i = 0; i < to.height; ++i) std::memcpy(to.row(i), from.row(i), to.width_bytes);
    return true;
  });
}

/// The memory (a GPU's or pinned) of each side of a copy of this kind.
struct sides {
  int to, from;
};
sides sides_of(cudaMemcpyKind kind, int gpu) {
  constexpr int pinned = memory_block::pinned;
  if (kind == cudaMemcpyHostToDevice) return {gpu, pinned};
  if (kind == cudaMemcpyDeviceToHost) return {pinned, gpu};
  if (kind == cudaMemcpyDeviceToDevice) return {gpu, gpu};
  refuse("expected a copy that says to or from a GPU, got kind " + std::to_string(kind));
}

}  // namespace
}  // namespace troupe::emulation

using namespace troupe::emulation;  // the definitions below are the API's own, in no namespace

extern "C" {

// The CPU's memory has to be pinned: a copy of pageable memory blocks, which would go unnoticed.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call(__func__, [=] {
    auto where = sides_of(kind, checked(stream).gpu);
    if (size_bytes == 0) return cudaSuccess;
    return queue_copy(stream, line("the target of cudaMemcpyAsync", where.to, to, size_bytes),
                      line("the source of cudaMemcpyAsync", where.from, from, size_bytes));
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_gpu, const void* from, int from_gpu, std::size_t size_bytes,
                                cudaStream_t stream) {
  return call(__func__, [=] {
    if (size_bytes == 0) return cudaSuccess;
    return queue_copy(stream, line("the target of cudaMemcpyPeerAsync", to_gpu, to, size_bytes),
                      line("the source of cudaMemcpyPeerAsync", from_gpu, from, size_bytes));
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return call(__func__, [=] {
    constexpr std::size_t most_pitch = 0x7fffffff;  // cudaDeviceProp::memPitch
    auto where = sides_of(kind, checked(stream).gpu);
    if (width > to_pitch || width > from_pitch || to_pitch > most_pitch || from_pitch > most_pitch)
      return cudaErrorInvalidPitchValue;
    if (width * height == 0) return cudaSuccess;
    auto side = [&](const char* name, int gpu, const void* first, std::size_t pitch) {
      auto area = line(name, gpu, first, width);
      area.pitch_bytes = pitch;
      area.height = height;
      return area;
    };
    return queue_copy(stream, side("the target of cudaMemcpy2DAsync", where.to, to, to_pitch),
                      side("the source of cudaMemcpy2DAsync", where.from, from, from_pitch));
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t size_bytes, cudaStream_t stream) {
  return call(__func__, [=] {
    if (size_bytes == 0) return cudaSuccess;
    std::lock_guard lock(the_machine().mutex);
    auto target = line("the target of cudaMemsetAsync", checked(stream).gpu, memory, size_bytes);
    target.require_there();
    return add_work(*stream, [target, value] {
      {
        std::lock_guard again(the_machine().mutex);
        target.require_there();
      }
      std::memset(target.first, value, target.width_bytes);
      return true;
    });
  });
}
}
