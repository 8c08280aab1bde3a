#include "troupe/ops/cpu/product/block_product.hpp"

#include "troupe/ops/cpu/product/product_loops.hpp"

namespace troupe::cpu {

void block_product(const block_product_shape& product, const float* a, const float* b, float* c) {
  fastest_product_loops().multiply_block(product, a, b, c);
}

}  // namespace troupe::cpu
