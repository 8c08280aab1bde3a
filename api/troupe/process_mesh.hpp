#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/collective/mesh.hpp"
#include "troupe/process_group.hpp"

namespace troupe {

class World;

/// The processes of a World as a grid with named axes, the last one fastest:
///
///     auto mesh = world.mesh({{"dp", 4}, {"tp", 2}});
///     mesh["dp"].all_reduce(gradient).wait();   // with those of the same tp
///
/// A group is formed when it is first asked for, by its members together, and anew when it has failed. A
/// handle: copies share their groups. For one thread.
class ProcessMesh {
 public:
  ProcessMesh(const World& world, mesh layout);

  /// This process's group along one axis.
  ProcessGroup operator[](std::string_view axis) const;
  /// Along several: the processes that differ from this one in these only, in ascending order of rank.
  ProcessGroup slice(const std::vector<std::string>& along) const;

  /// Where this process is along the axis.
  int coordinate(std::string_view axis) const;
  /// Of other ranks, of all slices, ...
  const mesh& layout() const;

 private:
  struct content;
  std::shared_ptr<content> shared_;
};

}  // namespace troupe
