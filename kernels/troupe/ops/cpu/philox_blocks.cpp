#include "troupe/ops/cpu/philox_blocks.hpp"

#include "troupe/ops/cpu/loops/vector_clones.hpp"

#if defined(TROUPE_VECTOR_CLONES) && defined(__x86_64__)
#define TROUPE_PHILOX_AVX512
// GCC 12 warns about a variable that its own header leaves uninitialised on purpose.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace troupe::cpu {
namespace {

constexpr std::uint32_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
constexpr std::uint32_t weyl_0 = 0x9E3779B9, weyl_1 = 0xBB67AE85;

/// The words of one block, in plain variables, so that a loop over blocks is vectorised.
struct block_words {
  std::uint32_t a, b, c, d;
};

[[gnu::always_inline]] inline std::uint32_t high_product(std::uint32_t x, std::uint32_t y) {
  return static_cast<std::uint32_t>((std::uint64_t{x} * y) >> 32);
}

/// Round `round` of troupe/random/philox.cpp and those after it.
template <std::uint32_t round>
[[gnu::always_inline]] inline block_words rounds_from(block_words w, philox_key key) {
  if constexpr (round == 10) {
    return w;
  } else {
    auto key_0 = key[0] + round * weyl_0, key_1 = key[1] + round * weyl_1;
    return rounds_from<round + 1>({high_product(multiplier_1, w.c) ^ w.b ^ key_0, multiplier_1 * w.c,
                                   high_product(multiplier_0, w.a) ^ w.d ^ key_1, multiplier_0 * w.a},
                                  key);
  }
}

TROUPE_CLONES void by_loop(const philox_key& key, const std::array<std::uint32_t, 3>& place,
                           std::uint32_t first, std::int64_t count, std::uint32_t* words) {
  const auto its_key = key;
  const auto [a, b, c] = place;
  for (std::int64_t i = 0; i < count; ++i) {
    auto block = rounds_from<0>({a, b, c, first + static_cast<std::uint32_t>(i)}, its_key);
    words[4 * i] = block.a;
    words[4 * i + 1] = block.b;
    words[4 * i + 2] = block.c;
    words[4 * i + 3] = block.d;
  }
}

#ifdef TROUPE_PHILOX_AVX512
// The compiler generates poor code for the 32 x 32 bit products, so they use intrinsics. Each word is in the
// low half of a 64-bit lane, from which the multiplication reads it; the high half is ignored until the end.
[[gnu::target("avx512f")]] void eight_blocks(philox_key key, __m512i a, __m512i b, __m512i c, __m512i d,
                                             std::uint32_t* words) {
  const auto by_0 = _mm512_set1_epi64(multiplier_0), by_1 = _mm512_set1_epi64(multiplier_1);
  constexpr int exclusive_or = 0x96;  // of three
  for (int round = 0; round < 10; ++round) {
    auto product_0 = _mm512_mul_epu32(a, by_0), product_1 = _mm512_mul_epu32(c, by_1);
    auto key_0 = _mm512_set1_epi64(key[0]), key_1 = _mm512_set1_epi64(key[1]);
    a = _mm512_ternarylogic_epi64(_mm512_srli_epi64(product_1, 32), b, key_0, exclusive_or);
    b = product_1;
    c = _mm512_ternarylogic_epi64(_mm512_srli_epi64(product_0, 32), d, key_1, exclusive_or);
    d = product_0;
    key = {key[0] + weyl_0, key[1] + weyl_1};
  }
  const auto low_half = _mm512_set1_epi64(0xffffffff);
  auto ab = _mm512_or_epi64(_mm512_and_epi64(a, low_half), _mm512_slli_epi64(b, 32));
  auto cd = _mm512_or_epi64(_mm512_and_epi64(c, low_half), _mm512_slli_epi64(d, 32));
  _mm512_storeu_si512(words, _mm512_unpacklo_epi64(ab, cd));
  _mm512_storeu_si512(words + 16, _mm512_unpackhi_epi64(ab, cd));
}

/// Computes the largest multiple of eight blocks; returns their number.
[[gnu::target("avx512f")]] std::int64_t by_eight(const philox_key& key,
                                                 const std::array<std::uint32_t, 3>& place,
                                                 std::uint32_t first, std::int64_t count,
                                                 std::uint32_t* words) {
  const auto a = _mm512_set1_epi64(place[0]), b = _mm512_set1_epi64(place[1]);
  const auto c = _mm512_set1_epi64(place[2]);
  const auto order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);  // so that unpacking leaves them in order
  std::int64_t done = 0;
  for (; done + 8 <= count; done += 8) {
    auto base = _mm512_set1_epi64(first + static_cast<std::uint32_t>(done));
    eight_blocks(key, a, b, c, _mm512_add_epi64(base, order), words + 4 * done);
  }
  return done;
}
#endif

}  // namespace

void philox_blocks(const philox_key& key, const std::array<std::uint32_t, 3>& place, std::uint32_t first,
                   std::int64_t count, std::uint32_t* words) {
  std::int64_t done = 0;
#ifdef TROUPE_PHILOX_AVX512
  if (__builtin_cpu_supports("avx512f")) done = by_eight(key, place, first, count, words);
#endif
  by_loop(key, place, first + static_cast<std::uint32_t>(done), count - done, words + 4 * done);
}

}  // namespace troupe::cpu
