#include "bench/compute/fma_rate.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace troupe::bench {
namespace {

// Twelve sums hide the latency of each.
constexpr int num_sums = 12, rounds_at_once = 4096;

/// Does some fused multiply-adds, and returns their sum. Sums approach 1 / 2 and stay normal numbers.
using fma_loop = float (*)();

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] float loop_of_avx2() {
  __m256 sums[num_sums];
  for (auto& sum : sums) sum = _mm256_set1_ps(0.25F);
  const auto factor = _mm256_set1_ps(0.5F);
  for (int round = 0; round < rounds_at_once; ++round)
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  for (const auto& sum : sums) sums[0] = _mm256_add_ps(sums[0], sum);
  return _mm256_cvtss_f32(sums[0]);
}

[[gnu::target("avx512f")]] float loop_of_avx512() {
  __m512 sums[num_sums];
  for (auto& sum : sums) sum = _mm512_set1_ps(0.25F);
  const auto factor = _mm512_set1_ps(0.5F);
  for (int round = 0; round < rounds_at_once; ++round)
#pragma GCC unroll 12
    for (auto& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
  for (const auto& sum : sums) sums[0] = _mm512_add_ps(sums[0], sum);
  return _mm512_cvtss_f32(sums[0]);
}
#endif

float plain_loop() {
  float sums[num_sums] = {};
  for (int round = 0; round < rounds_at_once; ++round)
    for (auto& sum : sums) sum = std::fma(sum, 0.5F, 0.5F);
  return std::accumulate(std::begin(sums), std::end(sums), 0.0F);
}

struct chosen_loop {
  fma_loop run;
  double flops;
};

chosen_loop widest() {
  constexpr double of_one_lane = 2.0 * num_sums * rounds_at_once;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return {loop_of_avx512, 16 * of_one_lane};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {loop_of_avx2, 8 * of_one_lane};
#endif
  return {plain_loop, of_one_lane};
}

double rate_of_this_thread(double seconds) {
  using clock = std::chrono::steady_clock;
  const auto loop = widest();
  static std::atomic<float> kept;  // so that the sums are needed
  auto begin = clock::now();
  double done = 0, elapsed_s = 0;
  while (elapsed_s < seconds) {
    kept.store(loop.run(), std::memory_order_relaxed);
    ++done;
    elapsed_s = std::chrono::duration<double>(clock::now() - begin).count();
  }
  return done * loop.flops / elapsed_s;
}

}  // namespace

double fma_flops_per_s(int threads, double seconds) {
  std::vector<double> rates(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < rates.size(); ++i)
      others.emplace_back([&rates, i, seconds] { rates[i] = rate_of_this_thread(seconds); });
    rates[0] = rate_of_this_thread(seconds);
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace troupe::bench
