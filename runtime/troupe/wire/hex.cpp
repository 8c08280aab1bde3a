#include "troupe/wire/hex.hpp"

#include <sodium.h>

namespace troupe::wire {

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text(bytes.size() * 2 + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                   bytes.size());
  text.pop_back();
  return text;
}

std::optional<std::vector<std::byte>> from_hex(std::string_view text) {
  std::vector<std::byte> bytes(text.size() / 2 + 1);  // never empty: the library takes no null pointer
  std::size_t size_bytes = 0;
  const char* end = nullptr;
  int status = ::sodium_hex2bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                                text.size(), nullptr, &size_bytes, &end);
  if (status != 0 || end != text.data() + text.size()) return {};
  bytes.resize(size_bytes);
  return bytes;
}

}  // namespace troupe::wire
