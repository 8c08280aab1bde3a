#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/cpu/attention/attention_rows.hpp"
#include "troupe/ops/cpu/loops/parallel.hpp"

namespace troupe::cpu {

// Attention is computed in blocks of queries x keys whose scores fit into the caches (FlashAttention). Within
// a block, strips of rows skip scores that the causal mask excludes.
constexpr std::int64_t queries_per_block = 64;
constexpr std::int64_t keys_per_block = 128;
constexpr std::int64_t rows_per_strip = 16;

/// Queries and keys [first, first + count) of one pair of blocks.
struct block_pair {
  std::int64_t first_query, num_queries, first_key, num_keys;
  bool causal;

  /// The number of keys in the block that the query of this row attends to; at least one.
  std::int64_t num_seen(std::int64_t row) const {
    return causal ? std::min(num_keys, first_query + row + 1 - first_key) : num_keys;
  }
  /// The first row whose query attends to this key.
  std::int64_t first_row_that_sees(std::int64_t key) const {
    return causal ? std::max<std::int64_t>(0, first_key + key - first_query) : 0;
  }
  /// Whether no earlier block of queries attends to this key.
  bool is_first_to_see(std::int64_t key) const {
    return causal ? first_key + key >= first_query : first_query == 0;
  }
};

/// The work of an operation over `num_heads` heads with `products` matrix products of all queries with all
/// keys, in units of parallel_for's `elements`.
inline std::int64_t elements_of_heads(std::int64_t num_heads, std::int64_t num_positions, std::int64_t width,
                                      int products) {
  return num_heads * num_positions * num_positions * width * products / multiply_adds_per_element;
}

/// A range of rows or keys of a block.
struct block_strip {
  std::int64_t first, count;
};

/// The visible scores of a strip of query rows in a block of keys.
inline score_rows scores_of(const block_pair& blocks, const block_strip& rows) {
  return {rows.count, keys_per_block, blocks.num_seen(rows.first + rows.count - 1),
          blocks.num_seen(rows.first)};
}

/// Calls `visit(block_strip)` for [0, count), in order.
template <class Visit>
void for_each_strip(std::int64_t count, const Visit& visit) {
  for (std::int64_t first = 0; first < count; first += rows_per_strip)
    visit(block_strip{first, std::min(rows_per_strip, count - first)});
}

/// Calls `visit(block_pair)` for the blocks of keys to which a block of queries attends, in ascending order.
template <class Visit>
void for_each_key_block(std::int64_t first_query, std::int64_t num_positions, bool causal,
                        const Visit& visit) {
  auto num_queries = std::min(queries_per_block, num_positions - first_query);
  auto end = causal ? first_query + num_queries : num_positions;
  for (std::int64_t key = 0; key < end; key += keys_per_block)
    visit(block_pair{first_query, num_queries, key, std::min(keys_per_block, end - key), causal});
}

}  // namespace troupe::cpu
