#include "troupe/job/job_definition.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;

TEST_CASE("each rank owns a block of devices and the stages on them") {
  job_definition job;
  job.training = make_plan({schedule_kind::gpipe, 6, 2, 4});
  job.devices_per_rank = 2;
  CHECK(job.rank_of_device(0) == 0);
  CHECK(job.rank_of_device(1) == 0);
  CHECK(job.rank_of_device(2) == 1);
  CHECK(job.rank_of_device(3) == 1);
  auto ranks = job.ranks_of_stages();
  REQUIRE(ranks.size() == 6);
  for (int stage = 0; stage < 6; ++stage) {
    auto at = static_cast<std::size_t>(stage);
    CHECK(ranks[at] == job.training.device_of_stage[at] / 2);
    CHECK(ranks[at] == job.rank_of_stage(stage));
  }
  CHECK(ranks.front() == 0);
  CHECK(ranks.back() == 1);
}
