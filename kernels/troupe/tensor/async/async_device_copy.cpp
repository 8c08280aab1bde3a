#include "troupe/tensor/async/async_device_copy.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "troupe/tensor/detail/caching_allocator.hpp"
#include "troupe/tensor/detail/device_memory.hpp"

namespace troupe {
namespace {

using event_handle = std::shared_ptr<const stream_event>;

/// When elements are computed, by their address, while a handle of computed_by_now lives.
struct known_events {
  std::mutex mutex;
  std::multimap<const void*, event_handle> by_address;

  void add(const void* elements, event_handle computed) {
    std::lock_guard lock(mutex);
    by_address.emplace(elements, std::move(computed));
  }
  /// Those of one tensor that was given several times are alike: its elements do not change.
  void remove(const void* elements) {
    std::lock_guard lock(mutex);
    by_address.erase(by_address.find(elements));
  }
  event_handle of(const void* elements) {
    std::lock_guard lock(mutex);
    auto found = by_address.find(elements);
    return found == by_address.end() ? nullptr : found->second;
  }
};

/// Never destroyed: tensors with static storage may be destroyed later.
known_events& events() {
  static auto* all = new known_events;
  return *all;
}

/// Of the form of `like`, in memory that no queued work uses.
tensor idle_tensor(const tensor& like, device target) {
  idle_memory_scope idle;
  return tensor::empty(like.shape(), like.dtype(), target);
}

}  // namespace

tensor computed_by_now(tensor value) {
  if (!value.defined() || value.device().type == device::kind::cpu) return value;
  auto* elements = value.bytes().data();
  events().add(elements, record_cuda(value.device().index));
  auto form = value;
  std::shared_ptr<void> owner(elements, [kept = std::move(value)](void* known) mutable {
    events().remove(known);
    kept = {};
  });
  return tensor::wrap(std::move(owner), elements, form.shape(), form.dtype(), form.device());
}

tensor async_device_copy(const tensor& value, device target) {
  if (!value.defined() || target == value.device() || target.type != device::kind::cuda ||
      capture_allocator_of(target))
    return value.to(target);
  auto result = idle_tensor(value, target);
  auto* to = result.bytes().data();
  if (value.device().type == device::kind::cpu) {
    copy_to_idle_cuda(to, target.index, value.bytes().data(), value.size_bytes());
    return result;
  }
  auto kept = std::make_shared<const tensor>(value);
  const auto* from = kept->bytes().data();
  auto computed = events().of(from);
  if (!computed) computed = record_cuda(value.device().index);
  copy_between_gpus(*computed, to, target.index, from, value.device().index, value.size_bytes(),
                    std::move(kept));
  return result;
}

}  // namespace troupe
