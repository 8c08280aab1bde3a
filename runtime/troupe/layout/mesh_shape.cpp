#include "troupe/layout/mesh_shape.hpp"

#include <algorithm>

namespace troupe::layout {

std::string_view to_string(mesh_axis axis) { return axis == mesh_axis::dp ? "dp" : "tp"; }

std::vector<int> mesh_shape::lanes_along(const std::vector<mesh_axis>& axes, int lane) const {
  std::vector<int> lanes;
  for (int other = 0; other < num_lanes(); ++other)
    if (std::ranges::all_of(mesh_axes, [&](mesh_axis axis) {
          return std::ranges::count(axes, axis) > 0 || index_along(axis, other) == index_along(axis, lane);
        }))
      lanes.push_back(other);
  return lanes;
}

}  // namespace troupe::layout
