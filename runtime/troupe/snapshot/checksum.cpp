#include "troupe/snapshot/checksum.hpp"

#include <sodium.h>

#include <stdexcept>

namespace troupe {

checksum checksum_of(std::span<const std::byte> bytes) {
  // Repeated calls cost nothing. Without the first one libsodium keeps its slow portable code.
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  checksum result;
  ::crypto_generichash(reinterpret_cast<unsigned char*>(result.data()), result.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr, 0);
  return result;
}

}  // namespace troupe
