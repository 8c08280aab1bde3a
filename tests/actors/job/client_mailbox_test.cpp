#include "troupe/job/client_mailbox.hpp"

#include <catch2/catch_test_macros.hpp>
#include <thread>

using namespace troupe;
using namespace troupe::actors::job;

TEST_CASE("events are taken in the order they were put, whatever they are") {
  client_mailbox mailbox;
  mailbox.put(step_progress{1, 2, {}});
  call_result result;
  result.index = 4;
  mailbox.put(result);
  cluster::recovery_report report;
  report.generation = 5;
  mailbox.put(report);
  mailbox.put(job_failure{"no more"});
  CHECK(std::get<step_progress>(mailbox.take()).step == 1);
  CHECK(std::get<call_result>(mailbox.take()).index == 4);
  CHECK(std::get<cluster::recovery_report>(mailbox.take()).generation == 5);
  CHECK(std::get<job_failure>(mailbox.take()).cause == "no more");
}

TEST_CASE("a thread that takes an event waits until another thread puts one") {
  client_mailbox mailbox;
  std::uint64_t sum = 0;
  std::thread user([&] {
    for (int i = 0; i < 1000; ++i) sum += std::get<step_progress>(mailbox.take()).step;
  });
  for (std::uint64_t step = 1; step <= 1000; ++step) mailbox.put(step_progress{step, 0, {}});
  user.join();
  CHECK(sum == 500500);
}
