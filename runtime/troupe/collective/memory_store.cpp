#include "troupe/collective/memory_store.hpp"

namespace troupe {

void memory_store::put(const std::string& key, std::span<const std::byte> value) {
  {
    std::lock_guard lock(mutex_);
    values_.insert_or_assign(key, std::vector<std::byte>(value.begin(), value.end()));
  }
  changed_.notify_all();
}

std::optional<std::vector<std::byte>> memory_store::get(const std::string& key,
                                                        std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [&] { return values_.contains(key); })) return {};
  return values_.at(key);
}

}  // namespace troupe
