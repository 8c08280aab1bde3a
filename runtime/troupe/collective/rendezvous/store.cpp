#include "troupe/collective/rendezvous/store.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

namespace troupe::collective {

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

void folder_store::put(const std::string& key, std::span<const std::byte> value) {
  auto file = file_of(key), fresh = file;
  fresh += ".new";
  std::ofstream(fresh, std::ios::binary)
      .write(reinterpret_cast<const char*>(value.data()), static_cast<std::streamsize>(value.size()));
  std::filesystem::rename(fresh, file);
}

std::optional<std::vector<std::byte>> folder_store::get(const std::string& key,
                                                        std::chrono::milliseconds timeout) {
  auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    if (std::ifstream file(file_of(key), std::ios::binary); file) {
      std::string text{std::istreambuf_iterator<char>(file), {}};
      auto bytes = std::as_bytes(std::span(text));
      return std::vector(bytes.begin(), bytes.end());
    }
    if (std::chrono::steady_clock::now() >= end) return {};
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::filesystem::path folder_store::file_of(std::string key) const {
  for (char& letter : key)
    if (letter == '/') letter = '_';
  return folder_ / key;
}

void checked_store::put(const std::string& key, std::span<const std::byte> value) {
  check_();
  keys_.put(key, value);
}

std::optional<std::vector<std::byte>> checked_store::get(const std::string& key,
                                                         std::chrono::milliseconds timeout) {
  using clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds interval{100};
  for (auto until = clock::now() + timeout;;) {
    check_();
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    if (auto value = keys_.get(key, std::clamp(left, {}, interval))) return value;
    if (left <= interval) return {};
  }
}

}  // namespace troupe::collective
