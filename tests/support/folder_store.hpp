#pragma once
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "troupe/collective/store.hpp"

namespace troupe::testing {

/// A store for processes of one host: a file in a folder for each key, put there whole by renaming it.
class folder_store : public store {
 public:
  explicit folder_store(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void put(const std::string& key, std::span<const std::byte> value) override {
    auto place = file_of(key);
    auto fresh = place.string() + ".new";
    std::ofstream(fresh, std::ios::binary)
        .write(reinterpret_cast<const char*>(value.data()), static_cast<std::streamsize>(value.size()));
    std::filesystem::rename(fresh, place);
  }

  /// Looks again and again: a folder cannot be waited for.
  std::optional<std::vector<std::byte>> get(const std::string& key,
                                            std::chrono::milliseconds timeout) override {
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

 private:
  std::filesystem::path file_of(std::string key) const {
    for (char& letter : key)
      if (letter == '/') letter = '_';
    return folder_ / key;
  }

  std::filesystem::path folder_;
};

}  // namespace troupe::testing
