#include "troupe/inspector/findings/step_pace.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <random>

using namespace troupe;
using namespace troupe::actors::inspector;

namespace {

/// Steps of four devices, 50 ms each, whose times vary by up to 10 %.
struct paced_job {
  step_pace pace;
  std::minstd_rand random{7};
  std::uint64_t step = 0;
  std::int64_t now_ms = 1'000'000;
  std::vector<double> busy_s = {0.010, 0.011, 0.012, 0.010};
  std::int64_t num_samples = 64;

  void run(int count, double slower = 1) {
    std::uniform_real_distribution<double> noise(1, 1.1);
    for (int i = 0; i < count; ++i) {
      now_ms += 50;
      actors::messages::recent_step made;
      made.step = ++step;
      made.at_ms = now_ms;
      made.num_samples = num_samples;
      for (auto one : busy_s) made.device_busy_s.push_back(one * slower * noise(random));
      pace.add(made);
    }
  }
};

}  // namespace

TEST_CASE("devices at their usual pace are not at fault, nor is a slow start") {
  paced_job job;
  job.run(15, 5);
  CHECK(job.pace.find().empty());
  for (int i = 0; i < 100; ++i) {
    job.run(5);
    CHECK(job.pace.find().empty());
  }
}

TEST_CASE("a device that takes twice as long as before is a straggler, and stays one") {
  paced_job job;
  job.run(100);
  job.busy_s[2] *= 2;
  job.run(20);
  auto found = job.pace.find();
  REQUIRE(found.size() == 1);
  CHECK(found[0].device == 2);
  CHECK(found[0].is_slower_than_before);
  CHECK(found[0].busy_s > 1.6 * found[0].reference_s);
  job.run(3000);
  CHECK(job.pace.find().size() == 1);
  job.busy_s[2] /= 2;
  job.run(20);
  CHECK(job.pace.find().empty());
}

TEST_CASE("a machine that becomes slower as a whole has no straggler") {
  paced_job job;
  job.run(100);
  job.run(100, 3);
  CHECK(job.pace.find().empty());
}

TEST_CASE("steps in which a process was suspended make no straggler of it") {
  paced_job job;
  job.run(100);
  auto usual = job.busy_s;
  for (int i = 0; i < 20; ++i) {
    job.busy_s[1] = 5;
    job.run(1);
    job.busy_s = usual;
    CHECK(job.pace.find().empty());
    job.run(9);
    CHECK(job.pace.find().empty());
  }
}

TEST_CASE("a device that has had much more to compute from the beginning is unbalanced, and no straggler") {
  paced_job job;
  job.busy_s = {0.010, 0.030, 0.012, 0.010};
  job.run(10);
  CHECK(job.pace.find().empty());  // too soon to tell
  job.run(GENERATE(15, 30, 100));
  auto found = job.pace.find();
  REQUIRE(found.size() == 1);
  CHECK(found[0].device == 1);
  CHECK_FALSE(found[0].is_slower_than_before);
}

TEST_CASE("steps of another size are compared with nothing before them") {
  paced_job job;
  job.run(100);
  job.num_samples = 128;
  job.busy_s = {0.020, 0.022, 0.045, 0.020};
  job.run(100);
  CHECK(job.pace.find().empty());
}

TEST_CASE("one device has nobody to be compared with, and short computations are not compared") {
  paced_job one;
  one.busy_s = {0.010};
  one.run(100);
  one.busy_s = {0.050};
  one.run(100);
  CHECK(one.pace.find().empty());
  paced_job brief;
  brief.busy_s = {0.0001, 0.0004};
  brief.run(200);
  CHECK(brief.pace.find().empty());
}
