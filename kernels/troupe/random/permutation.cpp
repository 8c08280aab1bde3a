#include "troupe/random/permutation.hpp"

#include <numeric>
#include <string>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/random/philox.hpp"

namespace troupe {
namespace {

/// The `index`-th number in [0, bound): the high half of a 64 x 64 bit product.
std::uint64_t bounded(const philox_stream& words, std::uint64_t index, std::uint64_t bound) {
  auto block = words.block(static_cast<std::uint32_t>(index));
  auto random = (std::uint64_t{block[1]} << 32) | block[0];
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(random) * bound) >> 64);
}

}  // namespace

std::vector<std::int64_t> permutation(std::int64_t n, std::uint64_t seed, std::uint64_t stream) {
  if (n < 0 || n > 0xFFFFFFFF) throw_invalid("permutation", "n in [0, 2^32)", std::to_string(n));
  philox_stream words(seed, random_purpose::permutation,
                      {static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32), 0});
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (auto left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[bounded(words, left, left)]);
  return order;
}

}  // namespace troupe
