#pragma once
#include <filesystem>

#include "troupe/collective/store.hpp"

namespace troupe {

/// A store for processes that share a folder and have no agent: a file for each key, put there whole by
/// renaming it. Waiting looks again every millisecond, since a folder cannot be waited for. For benches and
/// tests.
class folder_store final : public store {
 public:
  /// The folder exists, and is empty at first.
  explicit folder_store(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void put(const std::string& key, std::span<const std::byte> value) override;
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override;

 private:
  std::filesystem::path file_of(std::string key) const;

  std::filesystem::path folder_;
};

}  // namespace troupe
