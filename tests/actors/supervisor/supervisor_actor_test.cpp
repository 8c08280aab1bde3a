#include <catch2/catch_test_macros.hpp>

#include "one_process.hpp"
#include "support/drained.hpp"

using namespace troupe;
using namespace troupe::testing;

TEST_CASE("the end of the job and its recoveries are reported to the program") {
  one_process here;
  cluster::recovery_report report;
  report.generation = 5;
  here.actors.send(here.supervisor, actors::messages::recovery_done{report});
  here.actors.send(here.supervisor, actors::messages::job_ended{"no more"});
  auto events = drained(*here.client);
  REQUIRE(events.size() == 2);
  CHECK(std::get<cluster::recovery_report>(events[0]).generation == 5);
  CHECK(std::get<actors::job::job_failure>(events[1]).cause == "no more");
}

namespace {

/// A transport that cannot be used any more.
struct dead_transport : recording_transport {
  using recording_transport::recording_transport;
  void connect(std::uint64_t, const std::map<int, troupe::transport::process_address>&) override {
    throw std::runtime_error("no memory");
  }
};

}  // namespace

TEST_CASE("a supervisor that fails itself makes its process a suspect, or fails a job of one") {
  for (int world_size : {1, 2}) {
    one_process here(0, world_size);
    dead_transport transport(0);
    here.spawn_supervisor(transport);
    here.view(1);
    auto told = here.failures_told();
    if (world_size == 2) {
      REQUIRE(here.members.suspects.size() == 1);
      CHECK(here.members.suspects[0].first == 0);
      CHECK(here.members.suspects[0].second == "the supervisor of rank 0 failed: no memory");
      CHECK(told.empty());
    } else {
      CHECK(here.members.failures == std::vector<std::string>{"the supervisor of rank 0 failed: no memory"});
      CHECK(told == here.members.failures);
    }
  }
}

TEST_CASE("when the supervisor ends, all actors that it started end") {
  one_process here(0);
  here.begin();
  caf::anon_send_exit(here.supervisor, caf::exit_reason::user_shutdown);
  here.supervisor = {};
  here.gate.close();
  here.directory.close();
  here.actors.run();
  CHECK(here.actors.system().registry().running() == 0);
}
