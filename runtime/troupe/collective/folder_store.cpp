#include "troupe/collective/folder_store.hpp"

#include <fstream>
#include <iterator>
#include <thread>

namespace troupe {

void folder_store::put(const std::string& key, std::span<const std::byte> value) {
  auto place = file_of(key), fresh = place;
  fresh += ".new";
  std::ofstream(fresh, std::ios::binary)
      .write(reinterpret_cast<const char*>(value.data()), static_cast<std::streamsize>(value.size()));
  std::filesystem::rename(fresh, place);
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

}  // namespace troupe
