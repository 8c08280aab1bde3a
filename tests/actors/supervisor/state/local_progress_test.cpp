#include "troupe/supervisor/state/local_progress.hpp"

#include <catch2/catch_test_macros.hpp>

using namespace troupe;
using namespace troupe::actors::supervisor;
using namespace std::chrono_literals;

namespace {

struct two_devices {
  std::shared_ptr<actors::messages::device_status> first =
      std::make_shared<actors::messages::device_status>();
  std::shared_ptr<actors::messages::device_status> second =
      std::make_shared<actors::messages::device_status>();
  std::shared_ptr<actors::loader::loader_status> loader = std::make_shared<actors::loader::loader_status>();
  local_progress progress;
  two_devices() {
    progress.watch(0, first);
    progress.watch(1, second);
    progress.watch_loader(loader);
  }
};

const actors::messages::execution_position here{3, actors::job::call_kind::train,
                                                schedule::device_activity::computing, 1ull << 40, 77};

}  // namespace

TEST_CASE("a device's position is read as it was set") {
  actors::messages::device_status status;
  status.set(here);
  CHECK(status.read()->position == here);
}

TEST_CASE("a device counts as standing still until it sets a position again, even the same one") {
  two_devices job;
  job.first->set(here);
  job.progress.sample(1s);
  job.progress.sample(2s);
  job.progress.sample(3s);
  actors::messages::process_progress told;
  job.progress.describe(told);
  REQUIRE(told.devices.size() == 2);
  CHECK(told.devices[0].device == 0);
  CHECK(told.devices[0].position == here);
  CHECK(told.devices[0].for_s == 5);
  job.first->set(here);
  job.progress.sample(1s);
  told.devices.clear();
  job.progress.describe(told);
  CHECK(told.devices[0].for_s == 0);
  CHECK(told.devices[1].for_s == 6);
  CHECK(job.progress.longest_s() == 6);
}

TEST_CASE("a device that computes beyond the limit is stuck, a device that waits is not") {
  two_devices job;
  job.first->set({3, actors::job::call_kind::train, schedule::device_activity::waiting_for_tensor, 1, 2});
  job.progress.sample(1s);
  job.progress.sample(100s);
  CHECK(job.progress.stuck(60).empty());
  job.second->set(here);
  job.progress.sample(1s);
  job.progress.sample(59s);
  CHECK(job.progress.stuck(60).empty());
  job.progress.sample(2s);
  CHECK(job.progress.stuck(60) == "device 1");
}

TEST_CASE("a loader is stuck only within a dataset's code") {
  two_devices job;
  job.loader->begin();
  job.loader->end();
  job.progress.sample(1s);
  job.progress.sample(100s);
  CHECK(job.progress.stuck(60).empty());
  job.loader->begin();
  job.progress.sample(1s);
  job.progress.sample(100s);
  CHECK(job.progress.stuck(60) == "the loader");
  actors::messages::process_progress told;
  job.progress.describe(told);
  CHECK(told.loader_is_working == 1);
  CHECK(told.loader_for_s == 100);
}
