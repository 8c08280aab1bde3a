#include <cstdint>
#include <cstring>
#include <type_traits>

#include "troupe/ops/cpu/block_product.hpp"

// After the headers that others include too: what those define inline must run on every machine.
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#endif
#include "troupe/ops/cpu/onednn/block_tiles.hpp"

namespace troupe::cpu {

void tiles_of_avx2(const block_product_shape& of, const float* a, const float* b, float* c) {
  multiply_in_tiles<4, 2, 8>(of, {a, b, c}, of.columns);
}

}  // namespace troupe::cpu
