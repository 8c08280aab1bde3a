#include "support/cuda_emulation/execution/async_copy.hpp"

#include <cstdint>
#include <cstring>

#include "support/cuda_emulation/execution/block.hpp"
#include "support/cuda_emulation/execution/fault.hpp"
#include "support/cuda_emulation/execution/shared_memory.hpp"

namespace troupe::emulation {
namespace {

constexpr int copy_bytes = 16;

void check_aligned(const call& by, const char* what, const void* address) {
  if (auto rest = reinterpret_cast<std::uintptr_t>(address) % copy_bytes; rest != 0)
    fail(by, std::string("expected a ") + what + " address that is a multiple of 16 bytes, got one " +
                 std::to_string(rest) + " bytes further");
}

void write(const pending_copy& what) {
  auto* to = static_cast<std::byte*>(what.to);
  auto count = static_cast<std::size_t>(what.source_bytes);
  if (count > 0) std::memcpy(to, what.from, count);
  std::memset(to + count, 0, copy_bytes - count);
}

}  // namespace

void begin_async_copy(const call& by, void* to, const void* from, int source_bytes) {
  check_aligned(by, "target", to);
  check_aligned(by, "source", from);
  pending_copy copy{to, from, source_bytes};
  if (running->options().copies == copy_time::early)
    write(copy);
  else
    std::memset(to, unset_byte, copy_bytes);
  running->copies_of(*running->current).push_back(copy);
}

void finish_async_copies() {
  auto& copies = running->copies_of(*running->current);
  if (running->options().copies == copy_time::late)
    for (const auto& each : copies) write(each);
  copies.clear();
}

}  // namespace troupe::emulation
