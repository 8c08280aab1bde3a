#include <cstdint>
#include <cstring>
#include <type_traits>

#include "troupe/ops/cpu/block_product.hpp"

// Placed after headers that other sources also include: their inline functions must run on every machine.
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#endif
#include "troupe/ops/cpu/onednn/block_tiles.hpp"

namespace troupe::cpu {

void tiles_of_avx2(const block_product_shape& product, const float* a, const float* b, float* c) {
  multiply_in_tiles<4, 2, 8>(product, {a, b, c}, product.columns);
}

}  // namespace troupe::cpu
