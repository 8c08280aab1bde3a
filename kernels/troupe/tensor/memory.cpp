#include "troupe/tensor/memory.hpp"

#include "troupe/tensor/block_cache.hpp"
#include "troupe/tensor/device_memory.hpp"

namespace troupe {
namespace {

thread_local memory_category current_category = memory_category::other;

}  // namespace

std::shared_ptr<void> allocate(std::size_t size_bytes, device where) {
  auto category = current_category;
  if (auto recorded = recording_cache_of(where)) {
    auto* block = recorded->take(size_bytes, category);
    return {block, [recorded, size_bytes, category](void* memory) {
              recorded->give_back(memory, size_bytes, category);
            }};
  }
  auto& cache = cache_of(where);
  auto* block = cache.take(size_bytes, category);
  return {block,
          [&cache, size_bytes, category](void* memory) { cache.give_back(memory, size_bytes, category); }};
}

memory_statistics memory_of(device where) { return cache_of(where).statistics(); }
void reset_peak_memory(device where) { cache_of(where).reset_peak(); }
void release_cached_memory(device where) { cache_of(where).release_cached(); }

memory_scope::memory_scope(memory_category category) : outer_(current_category) {
  current_category = category;
}
memory_scope::~memory_scope() { current_category = outer_; }

}  // namespace troupe
