#include "troupe/job/latest_copies.hpp"

#include <catch2/catch_test_macros.hpp>

#include "troupe/job/job_definition.hpp"

using namespace troupe;
using namespace troupe::actors::job;

namespace {

/// Of a stage and a step.
tensor copy_of(int stage, std::uint64_t step) {
  return tensor::full({1}, 100.0 * stage + static_cast<double>(step));
}

float number_in(const tensor& packed) { return packed.values<float>()[0]; }

std::uint64_t newest(const latest_copies& copies) {
  auto got = copies.get();
  return got ? got->step : 0;
}

job_definition job_of(int stages, int devices, int replicas, int world_size,
                      layout::replica_content content) {
  job_definition job;
  job.place(make_plan({.num_stages = stages, .num_devices = devices, .num_replicas = replicas}), world_size,
            std::vector(static_cast<std::size_t>(stages), content));
  return job;
}

std::vector<bool> whole_in(const job_definition& job, int world_size) {
  std::vector<bool> found;
  for (int rank = 0; rank < world_size; ++rank) found.push_back(gets_complete_copies(job, rank, world_size));
  return found;
}

constexpr auto own = layout::replica_content::own, equal = layout::replica_content::equal;

}  // namespace

TEST_CASE("the newest step of which all stages have a copy is the latest, and it never goes back") {
  latest_copies copies(job_of(2, 2, 1, 1, own).parts);
  CHECK_FALSE(copies.get());
  copies.put(3, {{0}}, copy_of(0, 3));
  copies.put(4, {{0}}, copy_of(0, 4));
  CHECK_FALSE(copies.get());
  copies.put(4, {{1}}, copy_of(1, 4));
  auto got = copies.get();
  REQUIRE(got);
  CHECK(got->step == 4);
  REQUIRE(got->packed.size() == 2);
  CHECK(number_in(got->packed[0]) == 4);
  CHECK(number_in(got->packed[1]) == 104);
  // Of an older step, as after a recovery.
  copies.put(3, {{1}}, copy_of(1, 3));
  copies.put(2, {{0}}, copy_of(0, 2));
  copies.put(2, {{1}}, copy_of(1, 2));
  CHECK(newest(copies) == 4);
  copies.put(6, {{1}}, copy_of(1, 6));
  CHECK(newest(copies) == 4);
  copies.put(6, {{0}}, copy_of(0, 6));
  CHECK(newest(copies) == 6);
}

TEST_CASE("equal parts of any replica complete a copy, of others those of replica 0 do") {
  for (auto content : {own, equal}) {
    latest_copies copies(job_of(1, 1, 2, 2, content).parts);
    copies.put(1, {{.stage = 0, .replica = 1}}, copy_of(0, 1));
    CHECK(newest(copies) == (content == equal ? 1 : 0));
    copies.put(2, {{.stage = 0, .replica = 0}}, copy_of(0, 2));
    CHECK(newest(copies) == 2);
  }
}

TEST_CASE("a process gets complete copies if it hosts each stage or keeps the second copy of it") {
  CHECK(whole_in(job_of(4, 4, 1, 1, own), 1) == std::vector{true});
  CHECK(whole_in(job_of(4, 2, 1, 2, own), 2) == std::vector{true, true});
  CHECK(whole_in(job_of(4, 4, 1, 4, own), 4) == std::vector{false, false, false, false});
  // Rank 1 keeps what rank 0 hosts.
  CHECK(whole_in(job_of(1, 1, 1, 3, own), 3) == std::vector{true, true, false});
  // A replica of the whole model in each; of parts of its own rank 1 keeps those of replica 0.
  CHECK(whole_in(job_of(1, 1, 3, 3, equal), 3) == std::vector{true, true, true});
  CHECK(whole_in(job_of(1, 1, 3, 3, own), 3) == std::vector{true, true, false});
}
