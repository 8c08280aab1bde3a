#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/calls/group.hpp"

namespace troupe::collective {

/// One axis of a mesh: "dp", 4.
struct mesh_axis {
  std::string name;
  int size = 1;
};

/// Arranges the ranks of a world as a grid with named axes, of which the last one varies fastest. With
/// {{"dp", 4}, {"tp", 2}} rank r has the coordinates dp = r / 2 and tp = r % 2. A value. Ranks outside the
/// world and unknown axes throw std::invalid_argument.
class mesh {
 public:
  /// The product of the sizes is `world_size`; names are distinct and not empty, sizes at least 1.
  mesh(std::vector<mesh_axis> axes, int world_size);

  const std::vector<mesh_axis>& axes() const { return axes_; }
  int size() const { return size_; }
  int axis_size(std::string_view axis) const { return axes_[index_of(axis)].size; }

  int coordinate(world_rank rank, std::string_view axis) const;
  /// In the order of the axes.
  std::vector<int> coordinates(world_rank rank) const;
  world_rank rank_at(std::span<const int> coordinates) const;

  /// The ranks that differ from `rank` along the named axes only, with `rank` itself, ascending. No axis:
  /// only `rank`. All axes: all ranks.
  std::vector<world_rank> slice(world_rank rank, const std::vector<std::string>& along) const;
  /// All distinct slices: each rank is in exactly one.
  std::vector<std::vector<world_rank>> slices(const std::vector<std::string>& along) const;

  /// "dp 4 x tp 2"
  std::string text() const;

 private:
  std::size_t index_of(std::string_view axis) const;
  void require_rank(world_rank rank) const;

  std::vector<mesh_axis> axes_;
  std::vector<int> strides_;
  int size_ = 1;
};

}  // namespace troupe::collective
