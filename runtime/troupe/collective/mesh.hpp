#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// One direction of a mesh: "dp", 4.
struct mesh_axis {
  std::string name;
  int size = 1;
};

/// The ranks of a world laid out as a grid with named axes, the last one fastest: with {{"dp", 4}, {"tp", 2}}
/// rank r is at dp = r / 2, tp = r % 2. Arithmetic only. Ranks that are none and names that no axis has throw
/// std::invalid_argument.
class mesh {
 public:
  /// The sizes' product must be `world_size`; names are distinct and not empty, sizes at least 1.
  mesh(std::vector<mesh_axis> axes, int world_size);

  const std::vector<mesh_axis>& axes() const { return axes_; }
  int size() const { return size_; }
  int axis_size(std::string_view axis) const { return axes_[index_of(axis)].size; }

  int coordinate(int rank, std::string_view axis) const;
  /// In the order of the axes.
  std::vector<int> coordinates(int rank) const;
  int rank_at(std::span<const int> coordinates) const;

  /// The ranks that differ from `rank` along the named axes only, itself among them, ascending. No axis: the
  /// rank alone; all of them: everyone.
  std::vector<int> slice(int rank, const std::vector<std::string>& along) const;
  /// All of these: each rank is in exactly one.
  std::vector<std::vector<int>> slices(const std::vector<std::string>& along) const;

  /// "dp 4 x tp 2"
  std::string text() const;

 private:
  std::size_t index_of(std::string_view axis) const;
  void require_rank(int rank) const;

  std::vector<mesh_axis> axes_;
  std::vector<int> strides_;
  int size_ = 1;
};

}  // namespace troupe
