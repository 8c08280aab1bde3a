#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::collective {

/// A key-value store that the processes of a job share: the rendezvous of groups. Thread-safe.
class store {
 public:
  virtual ~store() = default;
  /// Replaces the value of the key.
  virtual void put(const std::string& key, std::span<const std::byte> value) = 0;
  /// Waits until some process has put the key. Nothing if none has within `timeout`.
  virtual std::optional<std::vector<std::byte>> get(const std::string& key,
                                                    std::chrono::milliseconds timeout) = 0;
  /// Throws if it is known that a process that would put a key is lost. For callers that wait for other
  /// things meanwhile.
  virtual void check() const {}
};

/// A store for the threads of one process.
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

/// A store for processes that share a folder but have no agent: one file for each key, written completely and
/// then renamed. get() polls every millisecond. For benches and tests.
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

/// Another store with a check, which throws when waiting has become useless. It is called before every
/// operation, and every 100 ms while get() waits.
class checked_store final : public store {
 public:
  /// `keys` outlives it.
  checked_store(store& keys, std::function<void()> check) : keys_(keys), check_(std::move(check)) {}

  void check() const override { check_(); }
  void put(const std::string& key, std::span<const std::byte> value) override;
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override;

 private:
  store& keys_;
  std::function<void()> check_;
};

}  // namespace troupe::collective
