#include "memory_blocks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <sstream>
#include <stdexcept>

#include "machine.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size_bytes) (static_cast<void>(address))
#define ASAN_UNPOISON_MEMORY_REGION(address, size_bytes) (static_cast<void>(address))
#endif

namespace troupe::emulation {
namespace {

constexpr std::size_t alignment = 256;                    // cudaMalloc's
constexpr std::size_t gpu_bytes = std::size_t{64} << 30;  // of each GPU; only written pages take memory
constexpr std::size_t sparse_bytes = std::size_t{1} << 30;
constexpr int unwritten = 0xff;  // NaN in f32, bf16 and f16
constexpr int behind_end = 0xa7;

std::size_t round_up(std::size_t size_bytes, std::size_t step) {
  return (size_bytes + step - 1) / step * step;
}

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::string name_of(int gpu) {
  return gpu == memory_block::pinned ? "pinned memory" : "memory of GPU " + std::to_string(gpu);
}

std::string describe(const void* address, const memory_blocks::entry* in) {
  std::ostringstream text;
  text << address;
  if (!in) return text.str() + ", in no block";
  const auto& [begin, block] = *in;
  auto offset = static_cast<const std::byte*>(address) - begin;
  text << ", " << offset << " bytes into a" << (block.is_freed ? " freed" : "") << " block of "
       << block.size_bytes << " bytes, " << name_of(block.gpu);
  return text.str();
}

/// The beginning of the bytes between a block and its guard page.
std::byte* end_of(const std::byte* begin, const memory_block& block) {
  return const_cast<std::byte*>(begin) + block.size_bytes;
}
std::size_t bytes_behind(const std::byte* begin, const memory_block& block) {
  auto guard = block.pages + block.mapped_bytes - page_bytes();
  return static_cast<std::size_t>(guard - end_of(begin, block));
}

void require_untouched_end(const memory_blocks::entry& entry) {
  const auto& [begin, block] = entry;
  auto* end = end_of(begin, block);
  auto count = bytes_behind(begin, block);
  ASAN_UNPOISON_MEMORY_REGION(end, count);
  auto* first = std::find_if(end, end + count, [](std::byte each) { return each != std::byte{behind_end}; });
  if (first != end + count) refuse("something wrote to " + describe(first, &entry));
  ASAN_POISON_MEMORY_REGION(end, count);
}

}  // namespace

void* memory_blocks::take(int gpu, std::size_t size_bytes) {
  auto& taken = taken_bytes_[gpu];
  if (size_bytes > gpu_bytes - taken) return nullptr;
  auto room = round_up(std::max<std::size_t>(size_bytes, 1), alignment);
  memory_block block{.gpu = gpu, .size_bytes = size_bytes};
  block.mapped_bytes = round_up(room, page_bytes()) + page_bytes();
  auto* pages = mmap(nullptr, block.mapped_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  block.pages = static_cast<std::byte*>(pages);
  auto* guard = block.pages + block.mapped_bytes - page_bytes();
  mprotect(guard, page_bytes(), PROT_NONE);
  auto* begin = guard - room;
  if (size_bytes < sparse_bytes) std::memset(begin, unwritten, size_bytes);
  auto* end = end_of(begin, block);
  std::memset(end, behind_end, bytes_behind(begin, block));
  ASAN_POISON_MEMORY_REGION(end, bytes_behind(begin, block));
  blocks_[begin] = block;
  taken += size_bytes;
  return begin;
}

void memory_blocks::give_back(int gpu, void* memory) {
  auto at = blocks_.find(static_cast<std::byte*>(memory));
  if (at == blocks_.end() || at->second.is_freed || at->second.gpu != gpu)
    refuse("expected the beginning of a block, " + name_of(gpu) + ", to free, got " +
           describe(memory, find(memory)));
  auto& block = at->second;
  require_untouched_end(*at);
  ASAN_UNPOISON_MEMORY_REGION(end_of(at->first, block), bytes_behind(at->first, block));
  if (mmap(block.pages, block.mapped_bytes, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
    throw std::runtime_error("the emulated GPU cannot protect freed memory: mmap failed");
  block.is_freed = true;
  taken_bytes_[gpu] -= block.size_bytes;
}

void memory_blocks::check_ends() const {
  for (const auto& each : blocks_)
    if (!each.second.is_freed) require_untouched_end(each);
}

const memory_blocks::entry* memory_blocks::find(const void* address) const {
  auto after = blocks_.upper_bound(static_cast<const std::byte*>(address));
  if (after == blocks_.begin()) return nullptr;
  const auto& candidate = *std::prev(after);
  return address < candidate.second.pages + candidate.second.mapped_bytes ? &candidate : nullptr;
}

void memory_blocks::require_range(const std::string& what, int gpu, const void* from,
                                  std::size_t size_bytes) const {
  const auto* found = find(from);
  if (found && !found->second.is_freed && found->second.gpu == gpu) {
    auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(from) - found->first);
    auto size = found->second.size_bytes;
    if (offset <= size && size_bytes <= size - offset) return;
  }
  refuse(what + ": expected " + std::to_string(size_bytes) + " bytes within one block, " + name_of(gpu) +
         ", got " + describe(from, found));
}

int memory_blocks::gpu_of(const void* address) const {
  const auto* found = find(address);
  if (!found) refuse("expected an address within a block, got " + describe(address, nullptr));
  return found->second.gpu;
}

void memory_blocks::refuse_access(const void* address) const {
  if (const auto* found = find(address)) refuse("something read or wrote " + describe(address, found));
}

std::size_t memory_blocks::count(int gpu) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      blocks_, [gpu](const auto& each) { return each.second.gpu == gpu && !each.second.is_freed; }));
}

}  // namespace troupe::emulation
