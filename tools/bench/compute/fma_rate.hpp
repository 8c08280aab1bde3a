#pragma once

namespace troupe::bench {

/// What no product of f32 can be faster than: the rate at which `threads` threads of the CPU do fused
/// multiply-adds of registers, with the widest vectors that they have, during about `seconds`. In operations,
/// two for each multiply-add.
double fma_flops_per_s(int threads, double seconds);

}  // namespace troupe::bench
