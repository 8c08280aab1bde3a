#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/mesh.hpp"
#include "troupe/process_group.hpp"

namespace troupe {

class World;

/// The processes of a World as a grid with named axes in row-major order (PyTorch's DeviceMesh):
///
///     auto mesh = world.mesh({{"dp", 4}, {"tp", 2}});
///     mesh["dp"].all_reduce(gradient).wait();   // with those of the same tp
///
/// The members of a slice form its group together when they first access it, and form a new one after it has
/// failed. A handle: copies share their groups. Not thread-safe.
class ProcessMesh {
 public:
  ProcessMesh(const World& world, collective::mesh layout);

  /// The group of this process along one axis.
  ProcessGroup operator[](std::string_view axis) const;
  /// The group along several axes: the processes whose coordinates differ from this one's only along `along`,
  /// in ascending order of rank.
  ProcessGroup slice(const std::vector<std::string>& along) const;

  /// The coordinate of this process along the axis.
  int coordinate(std::string_view axis) const;
  /// The grid itself, for the coordinates and slices of other ranks.
  const collective::mesh& layout() const;

 private:
  struct state;
  std::shared_ptr<state> shared_;
};

}  // namespace troupe
