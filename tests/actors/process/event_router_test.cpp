#include "troupe/process/event_router.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <catch2/catch_test_macros.hpp>
#include <limits>
#include <utility>

#include "troupe/link/forwarding_actor.hpp"

using namespace troupe;
using namespace troupe::actors::process;

TEST_CASE("whoever is told that the job has ended finds it ended, and by which signal") {
  caf::actor_system_config config;
  caf::actor_system system{config};
  event_router router(0, 1);
  std::vector<std::pair<bool, int>> found;
  auto supervisor = actors::link::make_forwarding_actor(system, [&](caf::mailbox_element&) {
    found.emplace_back(router.has_ended(), router.stop_signal());
    CHECK(*router.fenced == std::numeric_limits<std::uint64_t>::max());
  });
  router.attach(supervisor);
  int signal = 0;
  SECTION("stopped") { router.on_job_stopped(signal = 15, "at step 3"); }
  SECTION("failed") { router.on_job_failed("no data", failure_kind::error); }
  CHECK(found == std::vector{std::pair(true, signal)});
  router.attach({});
}
