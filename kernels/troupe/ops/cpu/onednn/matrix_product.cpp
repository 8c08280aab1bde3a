#include "troupe/ops/cpu/matrix_product.hpp"

#include "troupe/ops/cpu/onednn/library_threads.hpp"
#include "troupe/ops/cpu/onednn/product_primitive.hpp"
#include "troupe/ops/cpu/parallel.hpp"

#include <map>

namespace troupe::cpu {
namespace {

/// Limits the cache: with variable shapes, JIT-compiled primitives would fill the memory.
constexpr std::size_t max_primitives = 512;

/// One cache per thread, since a primitive's memory handles cannot be shared during execution.
class product_cache {
 public:
  product_primitive& get(const product_key& key) {
    auto found = primitives_.find(key);
    if (found != primitives_.end()) return found->second;
    if (primitives_.size() == max_primitives) primitives_.clear();
    return primitives_.try_emplace(key, key).first->second;
  }

 private:
  std::map<product_key, product_primitive> primitives_;
};

}  // namespace

bool multiplies_bf16() {
  auto isa = dnnl_get_effective_cpu_isa();
  return (isa & dnnl_cpu_isa_avx512_core_bf16) == static_cast<int>(dnnl_cpu_isa_avx512_core_bf16);
}

void multiply(const matrix_product_shape& product, const tensor& a, const tensor& b, const tensor& bias,
              tensor& c) {
  thread_local product_cache cache;
  auto threads =
      threads_for(product.batch * product.rows * product.columns * product.inner / multiply_adds_per_element);
  library_threads scope(threads);
  auto& primitive = cache.get({product, a.dtype(), c.dtype(), bias.defined(), threads});
  // For this product only: most need none, and the allocator keeps the block for the next one.
  tensor scratchpad;
  if (auto size_bytes = primitive.scratchpad_bytes(); size_bytes > 0)
    scratchpad = tensor::empty({static_cast<std::int64_t>(size_bytes)}, dtype::u8);
  primitive.run(a, b, bias, c, scratchpad.bytes().data());
}

}  // namespace troupe::cpu
