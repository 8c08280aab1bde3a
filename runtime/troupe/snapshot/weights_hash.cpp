#include "troupe/snapshot/weights_hash.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/files/checksum.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are hashed as they lie in memory");

void check(const std::vector<named_tensor>& sorted) {
  for (const auto& [name, value] : sorted)
    if (!value.defined())
      throw_invalid("weights_sha256", "a defined tensor '" + name + "'", "an undefined one");
  auto twice = std::ranges::adjacent_find(sorted, {}, &named_tensor::name);
  if (twice != sorted.end()) throw_invalid("weights_sha256", "each name once", "'" + twice->name + "' twice");
}

}  // namespace

std::string weights_sha256(std::vector<named_tensor> parameters) {
  std::ranges::sort(parameters, {}, &named_tensor::name);
  check(parameters);
  snapshot::weights_hasher hasher;
  for (const auto& named : parameters) hasher.add(named.value);
  return hasher.hex();
}

namespace snapshot {
namespace {

using hash_state = crypto_hash_sha256_state;

hash_state from_bytes(std::span<const std::byte> bytes) {
  hash_state state;
  std::memcpy(&state, bytes.data(), sizeof(state));
  return state;
}

std::vector<std::byte> to_bytes(const hash_state& state) {
  std::vector<std::byte> bytes(sizeof(state));
  std::memcpy(bytes.data(), &state, sizeof(state));
  return bytes;
}

}  // namespace

weights_hasher::weights_hasher() {
  hash_state state;
  ::crypto_hash_sha256_init(&state);
  state_ = to_bytes(state);
}

weights_hasher::weights_hasher(std::span<const std::byte> state) : state_(state.begin(), state.end()) {
  if (state.size() != sizeof(hash_state))
    throw_invalid("weights_hasher", std::to_string(sizeof(hash_state)) + " bytes of a hash's state",
                  std::to_string(state.size()));
}

void weights_hasher::add(const tensor& value, const std::function<void()>& on_progress) {
  auto state = from_bytes(state_);
  auto here = value.to({});
  auto bytes = std::as_const(here).bytes();
  for (constexpr std::size_t at_once = std::size_t{64} << 20; !bytes.empty();) {
    on_progress();
    auto piece = bytes.first(std::min(at_once, bytes.size()));
    ::crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(piece.data()), piece.size());
    bytes = bytes.subspan(piece.size());
  }
  state_ = to_bytes(state);
}

std::string weights_hasher::hex() const {
  auto state = from_bytes(state_);
  std::array<std::byte, crypto_hash_sha256_BYTES> digest;
  ::crypto_hash_sha256_final(&state, reinterpret_cast<unsigned char*>(digest.data()));
  return wire::to_hex(digest);
}

}  // namespace snapshot

}  // namespace troupe
