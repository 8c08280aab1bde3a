#include "troupe/random/philox.hpp"

#include "troupe/hash/fnv1a.hpp"

namespace troupe {
namespace {

constexpr int num_rounds = 10;
constexpr std::uint32_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;

std::uint32_t low_word(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high_word(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

}  // namespace

philox_counter philox4x32(philox_counter counter, philox_key key) {
  for (int round = 0; round < num_rounds; ++round) {
    auto product_0 = std::uint64_t{multiplier_0} * counter[0];
    auto product_1 = std::uint64_t{multiplier_1} * counter[2];
    counter = {high_word(product_1) ^ counter[1] ^ key[0], low_word(product_1),
               high_word(product_0) ^ counter[3] ^ key[1], low_word(product_0)};
    key = {key[0] + weyl_0, key[1] + weyl_1};
  }
  return counter;
}

philox_stream::philox_stream(std::uint64_t seed, random_purpose purpose, std::array<std::uint32_t, 3> place)
    : place_(place) {
  auto words = philox4x32({low_word(seed), high_word(seed), static_cast<std::uint32_t>(purpose), 0}, {0, 0});
  key_ = {words[0], words[1]};
}

std::uint64_t hash_of_name(std::string_view name) { return fnv1a().add(name).value(); }

}  // namespace troupe
