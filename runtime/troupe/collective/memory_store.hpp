#pragma once
#include <condition_variable>
#include <map>
#include <mutex>

#include "troupe/collective/store.hpp"

namespace troupe {

/// The store of a job of one process: its threads leave bytes for each other. For tests too.
class memory_store final : public store {
 public:
  void put(const std::string& key, std::span<const std::byte> value) override;
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::vector<std::byte>> values_;
};

}  // namespace troupe
