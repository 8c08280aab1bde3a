#include "troupe/ops/cpu/product/product_loops.hpp"

namespace troupe::cpu {
namespace {

const product_loops& fastest() {
#if defined(__x86_64__) && !defined(TROUPE_PLAIN_KERNELS)
  if (__builtin_cpu_supports("avx512f")) return avx512_product_loops();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2_product_loops();
#endif
  return plain_product_loops();
}

}  // namespace

const product_loops& fastest_product_loops() {
  static const auto& chosen = fastest();
  return chosen;
}

}  // namespace troupe::cpu
