#include "troupe/tensor/memory.hpp"

#include <atomic>
#include <utility>

#include "troupe/tensor/detail/account_counters.hpp"
#include "troupe/tensor/detail/caching_allocator.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {
namespace {

thread_local memory_category current_category = memory_category::other;
thread_local block_reuse current_reuse = block_reuse::in_stream_order;

/// Returns a block to its allocator when the last tensor that owns it is destroyed.
struct block_deleter {
  caching_allocator* allocator;
  std::shared_ptr<caching_allocator> captured;  ///< keeps the allocator of a graph capture alive; else null
  std::size_t size_bytes;
  memory_category category;
  block_reuse reuse;
  block_charge charge;

  void operator()(void* memory) {
    charge.debit(size_bytes);
    allocator->deallocate(memory, size_bytes, category, reuse);
  }
};

}  // namespace

std::shared_ptr<void> allocate(std::size_t size_bytes, device target) {
  require_within_limit(size_bytes, target, current_category);
  auto captured = capture_allocator_of(target);
  auto* allocator = captured ? captured.get() : &allocator_of(target);
  auto* block = allocator->allocate(size_bytes, current_category, current_reuse);
  return {block, block_deleter{allocator, std::move(captured), size_bytes, current_category, current_reuse,
                               block_charge(size_bytes, target.type, current_category)}};
}

void set_memory_category(const std::shared_ptr<void>& memory, memory_category category) {
  auto* deleter = std::get_deleter<block_deleter>(memory);
  if (!deleter) return;
  // From charge_here(), which has no other way to a tensor's memory.
  if (category == memory_category::other) return deleter->charge.move_here(deleter->size_bytes);
  auto from = memory_category::other;
  if (!std::atomic_ref(deleter->category).compare_exchange_strong(from, category)) return;
  deleter->allocator->set_category(deleter->size_bytes, category);
  deleter->charge.set_category(deleter->size_bytes, category);
}

memory_statistics memory_of(device target) { return allocator_of(target).statistics(); }
void reset_peak_memory(device target) { allocator_of(target).reset_peak(); }
void release_cached_memory(device target) {
  if (target.type == device::kind::cuda) forget_copied_cuda(target.index);
  allocator_of(target).release_cached();
}

memory_scope::memory_scope(memory_category category) : outer_(current_category) {
  current_category = category;
}
memory_scope::~memory_scope() { current_category = outer_; }

idle_memory_scope::idle_memory_scope() : outer_(current_reuse) { current_reuse = block_reuse::when_idle; }
idle_memory_scope::~idle_memory_scope() { current_reuse = outer_; }

memory_charge::memory_charge(std::size_t size_bytes)
    : size_bytes_(size_bytes),
      charge_(std::make_unique<block_charge>(size_bytes, device::kind::cpu, current_category)) {}
memory_charge::~memory_charge() { charge_->debit(size_bytes_); }

}  // namespace troupe
