#include "troupe/inspector/findings/core_waits.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::inspector;
using Catch::Approx;

namespace {

struct reported {
  core_waits waits;
  job_view view;

  void report(std::int64_t at_ms, double waited_s, std::uint32_t incarnation = 0) {
    auto& process = view.processes[1];
    process.at_ms = at_ms;
    process.report.incarnation = incarnation;
    process.report.core_wait_ns = static_cast<std::uint64_t>(waited_s * 1e9);
    waits.observe(view);
  }
};

}  // namespace

TEST_CASE("how many threads waited for a core is averaged from the report before a time to the newest") {
  reported job;
  CHECK(job.waits.mean_since(1, 0) == 0);
  job.report(1000, 5);
  CHECK(job.waits.mean_since(1, 0) == 0);
  job.report(2000, 5.5);
  job.report(2000, 5.5);  // the same report again
  job.report(3000, 7.5);
  CHECK(job.waits.mean_since(1, 2500) == Approx(2));
  CHECK(job.waits.mean_since(1, 2000) == Approx(2));
  CHECK(job.waits.mean_since(1, 1999) == Approx(1.25));
  CHECK(job.waits.mean_since(1, 0) == Approx(1.25));
  CHECK(job.waits.mean_since(1, 9000) == Approx(2));
  CHECK(job.waits.mean_since(0, 0) == 0);
}

TEST_CASE("what is usual follows the last 20 s") {
  reported job;
  CHECK(job.waits.usual(1) == 0);
  for (int i = 0; i <= 100; ++i) job.report(1000 * (i + 1), 2 * i);
  CHECK(job.waits.usual(1) == Approx(2).epsilon(0.02));
  job.report(102'000, 206);  // 6 threads for one second
  CHECK(job.waits.usual(1) == Approx(2.2).epsilon(0.02));
  CHECK(job.waits.mean_since(1, 101'000) == Approx(6));
}

TEST_CASE("another process of a rank has a past of its own") {
  reported job;
  job.report(1000, 5);
  job.report(2000, 6);
  job.report(3000, 0, 1);
  CHECK(job.waits.mean_since(1, 0) == 0);
  job.report(4000, 0.25, 1);
  CHECK(job.waits.mean_since(1, 0) == Approx(0.25));
}

TEST_CASE("the past of a process is bounded") {
  reported job;
  for (int i = 0; i < 1000; ++i) job.report(1000 + i, i < 900 ? i : 900);
  CHECK(job.waits.mean_since(1, 0) == 0);
}
