#include "troupe/snapshot/checksum.hpp"

#include <sodium.h>

#include <algorithm>
#include <stdexcept>

namespace troupe {
namespace {

constexpr std::size_t piece_bytes = std::size_t{64} << 20;

}  // namespace

checksum checksum_of(std::span<const std::byte> bytes, const std::function<void()>& on_progress) {
  // Repeated calls cost nothing. Without the first one libsodium keeps its slow portable code.
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  crypto_generichash_state state;
  ::crypto_generichash_init(&state, nullptr, 0, checksum_bytes);
  while (!bytes.empty()) {
    auto piece = bytes.first(std::min(bytes.size(), piece_bytes));
    ::crypto_generichash_update(&state, reinterpret_cast<const unsigned char*>(piece.data()), piece.size());
    bytes = bytes.subspan(piece.size());
    on_progress();
  }
  checksum result;
  ::crypto_generichash_final(&state, reinterpret_cast<unsigned char*>(result.data()), result.size());
  return result;
}

}  // namespace troupe
