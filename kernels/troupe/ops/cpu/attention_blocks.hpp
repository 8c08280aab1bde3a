#pragma once
#include <algorithm>
#include <cstdint>

#include "troupe/ops/cpu/attention_rows.hpp"
#include "troupe/ops/cpu/parallel.hpp"

namespace troupe::cpu {

// Queries and keys meet in blocks: scores of one block stay in the caches. A block of keys begins where one
// of queries does. Within a block strips of queries, or of keys, leave out what causal attention does not
// see.
constexpr std::int64_t queries_per_block = 64;
constexpr std::int64_t keys_per_block = 128;
constexpr std::int64_t rows_per_strip = 16;

/// Queries and keys [first, first + count) of one pair of blocks.
struct block_pair {
  std::int64_t first_query, num_queries, first_key, num_keys;
  bool causal;

  /// How many of the keys the query of this row may see; at least one.
  std::int64_t num_seen(std::int64_t row) const {
    return causal ? std::min(num_keys, first_query + row + 1 - first_key) : num_keys;
  }
  /// The first row whose query sees a key from this one on.
  std::int64_t first_row_that_sees(std::int64_t key) const {
    return causal ? std::max<std::int64_t>(0, first_key + key - first_query) : 0;
  }
  /// Whether no block of queries before this one sees that key.
  bool is_first_to_see(std::int64_t key) const {
    return causal ? first_key + key >= first_query : first_query == 0;
  }
};

/// What an operation over so many heads goes over, in elements of a loop: `products` matrix products of all
/// queries with all keys each.
inline std::int64_t elements_of_heads(std::int64_t num_heads, std::int64_t num_positions, std::int64_t width,
                                      int products) {
  return num_heads * num_positions * num_positions * width * products / multiply_adds_per_element;
}

/// Some rows or some keys of a block.
struct block_strip {
  std::int64_t first, count;
};

/// What the queries of some rows see of a block of keys.
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

/// Calls `visit(block_pair)` for the blocks of keys that a block of queries may see, in ascending order.
template <class Visit>
void for_each_key_block(std::int64_t first_query, std::int64_t num_positions, bool causal,
                        const Visit& visit) {
  auto num_queries = std::min(queries_per_block, num_positions - first_query);
  auto end = causal ? first_query + num_queries : num_positions;
  for (std::int64_t key = 0; key < end; key += keys_per_block)
    visit(block_pair{first_query, num_queries, key, std::min(keys_per_block, end - key), causal});
}

}  // namespace troupe::cpu
