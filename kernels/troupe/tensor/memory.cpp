#include "troupe/tensor/memory.hpp"

#include <atomic>
#include <utility>

#include "troupe/tensor/block_cache.hpp"
#include "troupe/tensor/device_memory.hpp"

namespace troupe {
namespace {

thread_local memory_category current_category = memory_category::other;

/// What is done when the last owner goes.
struct give_back {
  block_cache* cache;
  std::shared_ptr<block_cache> recorded;  ///< the same, if it may end before the memory does
  std::size_t size_bytes;
  memory_category category;

  void operator()(void* memory) const { cache->give_back(memory, size_bytes, category); }
};

}  // namespace

std::shared_ptr<void> allocate(std::size_t size_bytes, device where) {
  auto recorded = recording_cache_of(where);
  auto* cache = recorded ? recorded.get() : &cache_of(where);
  auto* block = cache->take(size_bytes, current_category);
  return {block, give_back{cache, std::move(recorded), size_bytes, current_category}};
}

void count_as(const std::shared_ptr<void>& memory, memory_category category) {
  auto* kept = std::get_deleter<give_back>(memory);
  auto from = memory_category::other;
  if (kept && std::atomic_ref(kept->category).compare_exchange_strong(from, category))
    kept->cache->count_as(kept->size_bytes, category);
}

memory_statistics memory_of(device where) { return cache_of(where).statistics(); }
void reset_peak_memory(device where) { cache_of(where).reset_peak(); }
void release_cached_memory(device where) { cache_of(where).release_cached(); }

memory_scope::memory_scope(memory_category category) : outer_(current_category) {
  current_category = category;
}
memory_scope::~memory_scope() { current_category = outer_; }

}  // namespace troupe
