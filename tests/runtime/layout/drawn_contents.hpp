#pragma once
#include <algorithm>
#include <random>
#include <vector>

#include "troupe/layout/cover.hpp"

namespace troupe::testing {

inline std::int64_t draw_below(std::mt19937_64& random, std::int64_t end) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
}

inline shape drawn_shape(std::mt19937_64& random) {
  std::vector<std::int64_t> extents(random() % 4);
  for (auto& extent : extents) extent = draw_below(random, 5) + 1;
  return shape(extents);
}

/// Cuts a box into up to `most` disjoint ones, at random indices of random axes.
inline std::vector<box> cut_box(const box& whole, std::size_t most, std::mt19937_64& random) {
  std::vector<box> pieces{whole};
  for (std::size_t tries = 0; tries < 2 * most && pieces.size() < most && !whole.extent.empty(); ++tries) {
    auto& piece = pieces[random() % pieces.size()];
    auto axis = random() % whole.extent.size();
    if (piece.extent[axis] < 2) continue;
    auto at = draw_below(random, piece.extent[axis] - 1) + 1;
    auto rest = piece;
    rest.offset[axis] += at;
    rest.extent[axis] -= at;
    piece.extent[axis] = at;
    pieces.push_back(rest);
  }
  std::ranges::shuffle(pieces, random);
  return pieces;
}

/// A tensor that up to three slices with up to three shards each hold together: each slice some boxes, each
/// shard a range of their elements.
inline std::vector<std::pair<layout::part_id, tensor_contents>> drawn_pieces(const std::string& name,
                                                                             const shape& whole, int stage,
                                                                             std::mt19937_64& random) {
  auto num_slices = random() % 3 + 1;
  std::vector<std::vector<box>> of_slice(num_slices);
  for (auto& piece : cut_box(whole_box(whole), 5, random)) of_slice[random() % num_slices].push_back(piece);
  std::vector<std::pair<layout::part_id, tensor_contents>> pieces;
  for (std::size_t slice = 0; slice < num_slices; ++slice) {
    std::int64_t size = 0, begin = 0;
    for (const auto& one : of_slice[slice]) size += num_elements(one);
    auto num_shards = static_cast<int>(random() % 3 + 1);
    for (int shard = 0; shard < num_shards; ++shard) {
      auto end = shard + 1 == num_shards ? size : begin + draw_below(random, size - begin + 1);
      pieces.push_back({{{.stage = stage, .slice = static_cast<int>(slice)}, shard},
                        {name, dtype::f32, whole.extents(), of_slice[slice], begin, end}});
      begin = end;
    }
  }
  return pieces;
}

}  // namespace troupe::testing
