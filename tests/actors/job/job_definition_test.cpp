#include "troupe/job/job_definition.hpp"

#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

using namespace troupe;
using namespace troupe::actors::job;

TEST_CASE("a job begins with a block of devices, and of the stages on them, on each rank") {
  job_definition job;
  job.place(make_plan({schedule_kind::gpipe, 6, 2, 4}), 2);
  CHECK(job.training.num_stages == 6);
  for (int device = 0; device < 4; ++device) CHECK(job.home.member_of({device}) == device / 2);
  std::vector<int> ranks;
  for (int stage = 0; stage < 6; ++stage) ranks.push_back(host_of(job.placed, job.home, {.stage = stage}));
  CHECK(ranks == std::vector<int>{0, 0, 0, 0, 1, 1});
}

TEST_CASE("in a world of more processes than devices some host none") {
  job_definition job;
  job.place(make_plan({schedule_kind::gpipe, 2, 2, 2}), 4);
  CHECK(job.home.devices_of({1}) == std::vector<mesh::device_id>{{1}});
  CHECK(job.home.devices_of({2}).empty());
  CHECK(job.home.devices_of({3}).empty());
}

TEST_CASE("the parts of a stage are equal only where there are several replicas that hold it alike") {
  auto placed_with = [](int num_replicas, const std::vector<layout::replica_content>& contents) {
    job_definition job;
    job.place(make_plan({.num_stages = 2, .num_devices = 2, .num_replicas = num_replicas}), 2, contents);
    return job;
  };
  using enum layout::replica_content;
  auto job = placed_with(2, {equal, own});
  CHECK(job.part_of({.stage = 0, .replica = 1}).content == equal);
  CHECK(job.part_of({.stage = 1, .replica = 0}).content == own);
  CHECK_FALSE(job.shares_metrics());
  CHECK(placed_with(2, {own, equal}).shares_metrics());
  CHECK_FALSE(placed_with(2, {}).shares_metrics());
  CHECK_FALSE(placed_with(1, {equal, equal}).shares_metrics());
  CHECK_THROWS_AS(job.part_of({.stage = 2}), std::invalid_argument);
}

TEST_CASE("each slice of a stage has a device and a part of its own") {
  job_definition job;
  job.place(make_plan({.num_stages = 2, .num_devices = 1, .num_replicas = 2, .num_slices = 2}), 2,
            {layout::replica_content::equal, layout::replica_content::own});
  CHECK(job.placed.num_devices() == 4);
  CHECK(job.parts.size() == 8);
  const auto& part = job.part_of({.stage = 0, .replica = 1, .slice = 1});
  CHECK(layout::stands_for({{.stage = 0, .replica = 0, .slice = 1}}, part));
  CHECK_FALSE(layout::stands_for({{.stage = 0, .replica = 1, .slice = 0}}, part));
}
