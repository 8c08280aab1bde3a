#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace troupe::layout {

/// The axes of a job's mesh beside its pipeline stages: data parallel replicas, each with microbatches of its
/// own, and tensor parallel slices, which share those of their replica. The numbers go over the wire.
enum class mesh_axis : std::uint8_t { dp = 0, tp = 1 };
inline constexpr std::array mesh_axes = {mesh_axis::dp, mesh_axis::tp};

/// "dp" or "tp".
std::string_view to_string(mesh_axis axis);

/// How many copies of the pipeline a job runs side by side. One copy, a lane, is a slice of a replica. Lanes
/// are numbered replica by replica.
struct mesh_shape {
  int num_replicas = 1;
  int num_slices = 1;  ///< of each replica

  int num_lanes() const { return num_replicas * num_slices; }
  int size_of(mesh_axis axis) const { return axis == mesh_axis::dp ? num_replicas : num_slices; }
  int lane_at(int replica, int slice) const { return replica * num_slices + slice; }
  int replica_of(int lane) const { return lane / num_slices; }
  int slice_of(int lane) const { return lane % num_slices; }
  /// The lane's replica or slice.
  int index_along(mesh_axis axis, int lane) const {
    return axis == mesh_axis::dp ? replica_of(lane) : slice_of(lane);
  }
  /// Those that differ from the lane in nothing but their index along the axes, itself included, ascending.
  std::vector<int> lanes_along(const std::vector<mesh_axis>& axes, int lane) const;
  bool operator==(const mesh_shape&) const = default;
};

}  // namespace troupe::layout
