#include "troupe/cluster/local_membership.hpp"

#include <catch2/catch_test_macros.hpp>
#include <thread>

using namespace troupe;
using namespace troupe::cluster;

namespace {

struct recording_events : membership_events {
  void on_fence(std::uint64_t generation, const std::vector<member_loss>& losses) override {
    fences.push_back(generation);
    causes.push_back(losses.at(0).cause);
    thread = std::this_thread::get_id();
    if (self) self->quiesced(generation, {{std::byte(generation)}, {}});
  }
  void on_view(const membership_view& view) override { views.push_back(view); }
  void on_recovered(const recovery_report& report) override { reports.push_back(report); }
  void on_job_done() override {}
  void on_job_failed(const std::string& cause, failure_kind) override { ends.push_back(cause); }
  void on_stop(int signal) override { stops.push_back(signal); }
  void on_job_stopped(int, const std::string& what) override { stopped.push_back(what); }

  membership* self = nullptr;  ///< acknowledges from within on_fence
  std::vector<std::uint64_t> fences;
  std::vector<std::string> causes, ends, stopped;
  std::vector<int> stops;
  std::vector<membership_view> views;
  std::vector<recovery_report> reports;
  std::thread::id thread;
};

}  // namespace

TEST_CASE("a job of one process has a view of one, and a new one for each request") {
  recording_events events;
  auto self = make_local_membership(events);
  events.self = self.get();
  self->join({0, 0, 42, "here", "avx2", {}});
  REQUIRE(events.views.size() == 1);
  CHECK(events.views[0].generation == 1);
  CHECK(events.views[0].members.at(0).pid == 42);
  self->request_generation(1, "stage 0 failed");
  self->request_generation(1, "stale");
  CHECK(events.fences == std::vector<std::uint64_t>{2});
  CHECK(events.causes.at(0) == "stage 0 failed");
  CHECK(events.thread == std::this_thread::get_id());
  REQUIRE(events.views.size() == 2);
  CHECK(events.views[1].members.at(0).address == transport::process_address{{std::byte(2)}, {}});
  self->report(2, recovery_phase::replayed);
  REQUIRE(events.reports.size() == 1);
  CHECK(events.reports[0].loss.cause == "stage 0 failed");
}

TEST_CASE("a failed local job is told its own cause, and one that left gets no event") {
  recording_events events;
  auto self = make_local_membership(events);
  self->join({});
  SECTION("failed") {
    self->fail_job("the loss is not a number");
    CHECK(events.ends == std::vector<std::string>{"the loss is not a number"});
  }
  SECTION("left") {
    self->leave();
    self->request_generation(1, "late");
    self->fail_job("late");
    CHECK(events.fences.empty());
    CHECK(events.ends.empty());
  }
}
