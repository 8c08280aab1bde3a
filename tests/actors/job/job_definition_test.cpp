#include "troupe/job/job_definition.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("a job begins with a block of devices, and of the stages on them, on each rank") {
  job_definition job;
  job.place(make_plan({schedule_kind::gpipe, 6, 2, 4}), 2);
  CHECK(job.training.num_stages == 6);
  for (int device = 0; device < 4; ++device) CHECK(job.home.member_of({device}).rank == device / 2);
  std::vector<int> ranks;
  for (int stage = 0; stage < 6; ++stage)
    ranks.push_back(host_of(job.placed, job.home, {.stage = stage}).rank);
  CHECK(ranks == std::vector<int>{0, 0, 0, 0, 1, 1});
}

TEST_CASE("in a world of more processes than devices some host none") {
  job_definition job;
  job.place(make_plan({schedule_kind::gpipe, 2, 2, 2}), 4);
  CHECK(job.home.devices_of({1}) == std::vector<device_id>{{1}});
  CHECK(job.home.devices_of({2}).empty());
  CHECK(job.home.devices_of({3}).empty());
}
