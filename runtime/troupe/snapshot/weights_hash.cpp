#include "troupe/snapshot/weights_hash.hpp"

#include <sodium.h>

#include <algorithm>
#include <array>
#include <bit>

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
  crypto_hash_sha256_state state;
  ::crypto_hash_sha256_init(&state);
  for (const auto& named : parameters) {
    auto bytes = named.value.bytes();
    ::crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  }
  std::array<std::byte, crypto_hash_sha256_BYTES> digest;
  ::crypto_hash_sha256_final(&state, reinterpret_cast<unsigned char*>(digest.data()));
  return wire::to_hex(digest);
}

}  // namespace troupe
