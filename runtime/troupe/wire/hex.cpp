#include "troupe/wire/hex.hpp"

#include <sodium.h>

namespace troupe {

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text(bytes.size() * 2 + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                   bytes.size());
  text.pop_back();
  return text;
}

}  // namespace troupe
