#pragma once
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "support/bits.hpp"
#include "troupe/ops/threads.hpp"

namespace troupe::testing {

/// Requires that `compute`, which returns tensors, gives the same bits with one thread and with three.
template <class Compute>
void require_same_bits_on_threads(const Compute& compute) {
  set_num_threads(1);
  std::vector<tensor> alone = compute();
  set_num_threads(3);
  std::vector<tensor> together = compute();
  set_num_threads(1);
  REQUIRE(alone.size() == together.size());
  for (std::size_t i = 0; i < alone.size(); ++i) REQUIRE(same_bits(alone[i], together[i]));
}

}  // namespace troupe::testing
