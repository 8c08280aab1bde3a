#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/threads.hpp"

namespace troupe::cpu {

// Queries and keys meet in blocks: scores of one block stay in the caches, and matrix products of these sizes
// are at nine tenths of the rate of large ones. A block of keys begins where one of queries does.
constexpr std::int64_t queries_per_block = 64;
constexpr std::int64_t keys_per_block = 128;

/// Queries and keys [first, first + count) of one pair of blocks.
struct block_pair {
  std::int64_t first_query, num_queries, first_key, num_keys;
  bool causal;

  /// How many of the keys the query of this row may see; at least one.
  std::int64_t num_seen(std::int64_t row) const {
    return causal ? std::min(num_keys, first_query + row + 1 - first_key) : num_keys;
  }
};

/// Calls `visit(block_pair)` for the blocks of keys that a block of queries may see, in ascending order.
template <class Visit>
void for_each_key_block(std::int64_t first_query, std::int64_t num_positions, bool causal,
                        const Visit& visit) {
  auto num_queries = std::min(queries_per_block, num_positions - first_query);
  auto end = causal ? first_query + num_queries : num_positions;
  for (std::int64_t key = 0; key < end; key += keys_per_block)
    visit(block_pair{first_query, num_queries, key, std::min(keys_per_block, end - key), causal});
}

/// While it lives, this thread's matrix products use no other threads: heads are what is done in parallel.
class alone_in_products {
 public:
  alone_in_products() : before_(num_threads()) { set_num_threads(1); }
  ~alone_in_products() { set_num_threads(before_); }
  alone_in_products(const alone_in_products&) = delete;
  alone_in_products& operator=(const alone_in_products&) = delete;

 private:
  int before_;
};

}  // namespace troupe::cpu
