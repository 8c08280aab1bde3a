#pragma once
#include <vector>

#include "troupe/ops/cpu/product/product_loops.hpp"

namespace troupe::testing {

/// The loops as AVX-512 has them, vectors of 64 bytes and tiles of 14 rows, computed by AVX2: so their logic
/// is tested where there is no AVX-512.
const cpu::product_loops& wide_product_loops();

/// All loops that this processor can run.
std::vector<const cpu::product_loops*> all_product_loops();

}  // namespace troupe::testing
