#include "troupe/files/checksum.hpp"

#include <sodium.h>

#include <algorithm>
#include <stdexcept>

namespace troupe::files {
namespace {

constexpr std::size_t piece_bytes = std::size_t{64} << 20;

}  // namespace

struct running_checksum::state {
  crypto_generichash_state hash;
};

running_checksum::running_checksum() : state_(std::make_unique<state>()) {
  // Repeated calls cost nothing. Without the first one libsodium keeps its slow portable code.
  if (::sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  ::crypto_generichash_init(&state_->hash, nullptr, 0, checksum_bytes);
}

running_checksum::~running_checksum() = default;

void running_checksum::add(std::span<const std::byte> bytes) {
  ::crypto_generichash_update(&state_->hash, reinterpret_cast<const unsigned char*>(bytes.data()),
                              bytes.size());
}

checksum running_checksum::result() {
  checksum result;
  ::crypto_generichash_final(&state_->hash, reinterpret_cast<unsigned char*>(result.data()), result.size());
  return result;
}

checksum running_checksum::so_far() const {
  running_checksum copy;
  copy.state_->hash = state_->hash;
  return copy.result();
}

checksum checksum_of(std::span<const std::byte> bytes, const std::function<void()>& on_progress) {
  running_checksum running;
  while (!bytes.empty()) {
    auto piece = bytes.first(std::min(bytes.size(), piece_bytes));
    running.add(piece);
    bytes = bytes.subspan(piece.size());
    on_progress();
  }
  return running.result();
}

}  // namespace troupe::files
