#include "troupe/layout/mesh_shape.hpp"

#include <catch2/catch_test_macros.hpp>

using troupe::layout::mesh_axis;
using troupe::layout::mesh_shape;
using lanes = std::vector<int>;

TEST_CASE("lanes are numbered replica by replica, and each is a slice of a replica") {
  mesh_shape mesh{3, 2};
  CHECK(mesh.num_lanes() == 6);
  CHECK(mesh.size_of(mesh_axis::dp) == 3);
  CHECK(mesh.size_of(mesh_axis::tp) == 2);
  for (int lane = 0; lane < 6; ++lane) {
    CHECK(mesh.lane_at(mesh.replica_of(lane), mesh.slice_of(lane)) == lane);
    CHECK(mesh.index_along(mesh_axis::dp, lane) == lane / 2);
    CHECK(mesh.index_along(mesh_axis::tp, lane) == lane % 2);
  }
}

TEST_CASE("lanes along axes differ in nothing else") {
  mesh_shape mesh{3, 2};
  CHECK(mesh.lanes_along({}, 3) == lanes{3});
  CHECK(mesh.lanes_along({mesh_axis::dp}, 3) == lanes{1, 3, 5});
  CHECK(mesh.lanes_along({mesh_axis::tp}, 3) == lanes{2, 3});
  CHECK(mesh.lanes_along({mesh_axis::dp, mesh_axis::tp}, 3) == lanes{0, 1, 2, 3, 4, 5});
}
