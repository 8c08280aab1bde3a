#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "troupe/ops/cpu/product/product_loops.hpp"

// Placed after headers that other sources also include: their inline functions must run on every machine.
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx2,fma")
#endif
#include "troupe/ops/cpu/product/avx512_vector.hpp"
#include "troupe/ops/cpu/product/loops_of.hpp"

namespace troupe::cpu {

const product_loops& avx512_product_loops() { return loops_of<avx512_vector>; }

}  // namespace troupe::cpu
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
