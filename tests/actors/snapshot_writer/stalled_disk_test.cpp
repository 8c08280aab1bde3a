// What the snapshot writer does when the disk does nothing, or much too slowly.
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include <catch2/catch_test_macros.hpp>
#include <deque>
#include <sstream>

#include "actors/virtual_actors.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/snapshot_writer/snapshot_writer_actor.hpp"

using namespace troupe;
using namespace troupe::actors::snapshot_writer;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

/// A disk that answers when the test says so.
struct slow_disk_state {
  static constexpr const char* actor_name = "slow disk";
  struct script {
    std::vector<actors::messages::write_part> begun;  ///< writes that the disk has begun, with their states
    std::deque<caf::typed_response_promise<actors::messages::part_on_disk>> writes;
    std::deque<caf::typed_response_promise<actors::messages::found_on_disk>> searches;
  };
  slow_disk_state(caf::event_based_actor* self, std::shared_ptr<script> what)
      : self_(self), what_(std::move(what)) {}
  caf::behavior make_behavior() {
    return {
        [this](const actors::messages::write_part& command) -> caf::result<actors::messages::part_on_disk> {
          what_->begun.push_back(command);
          return what_->writes.emplace_back(self_->make_response_promise<actors::messages::part_on_disk>());
        },
        [this](const actors::messages::find_on_disk&) -> caf::result<actors::messages::found_on_disk> {
          return what_->searches.emplace_back(
              self_->make_response_promise<actors::messages::found_on_disk>());
        },
        [this](const actors::messages::part_on_disk& done) {
          what_->begun.front().packed = {};
          what_->writes.front().deliver(done);
          what_->writes.pop_front();
        },
        [this](const actors::messages::found_on_disk& done) { what_->searches.front().deliver(done); }};
  }
  caf::event_based_actor* self_;
  std::shared_ptr<script> what_;
};

struct stalled_disk {
  virtual_actors actors;
  std::ostringstream log;
  probe scheduler{actors};
  std::shared_ptr<slow_disk_state::script> disk = std::make_shared<slow_disk_state::script>();
  std::shared_ptr<std::atomic<std::uint64_t>> progress;
  caf::actor slow;
  caf::actor writer;

  stalled_disk() {
    snapshot_writer_options options;
    options.disk = slow = actors.spawn<actors::actor::actor_of<slow_disk_state>>(disk);
    options.log =
        std::make_shared<spdlog::logger>("actors", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
    progress = options.progress;
    writer = actors.spawn<actors::actor::actor_of<snapshot_writer_state>>(options);
    actors.send(writer, actors::messages::writer_generation{1, scheduler.handle()});
  }
  void write(std::uint64_t step, int stage = 0) {
    actors.send(writer, actors::messages::write_part{
                            1, step, {{stage}}, tensor::full({4}, static_cast<float>(step))});
  }
  void finish_write() { actors.send(slow, actors::messages::part_on_disk{{{}, "file", 1, "sum", "here"}}); }
  std::vector<std::uint64_t> not_written() const {
    std::vector<std::uint64_t> steps;
    for (const auto& told : scheduler.all<actors::messages::part_written>())
      if (!told.problem.empty()) steps.push_back(told.step);
    return steps;
  }
  std::size_t count(const std::string& text) const {
    std::size_t found = 0;
    auto all = log.str();
    for (auto at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++found;
    return found;
  }
};

using steps = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("at most two states of each stage are held: a new state replaces the one that waits for the disk") {
  stalled_disk here;
  for (std::uint64_t step = 1; step <= 6; ++step) here.write(step);
  for (std::uint64_t step : {1, 2}) here.write(step, 1);  // none of this one is being written
  CHECK(here.not_written() == steps{2, 3, 4, 5});
  CHECK(here.count("snapshots are skipped") == 1);
  here.finish_write();
  here.finish_write();
  REQUIRE(here.disk->begun.size() == 3);
  CHECK(here.disk->begun[1].step == 6);
  CHECK(here.disk->begun[2].part.cell.stage == 1);
}

TEST_CASE("a disk that stalls is reported once, and so is its recovery") {
  stalled_disk here;
  here.write(1);
  here.actors.advance(9s);
  CHECK(here.log.str().empty());
  here.actors.advance(2s);
  CHECK(here.count("the disk has made no progress for") == 1);
  here.actors.advance(40s);
  CHECK(here.count("the disk has made no progress for") == 1);
  here.finish_write();
  CHECK(here.count("works again after") == 1);
  CHECK(here.scheduler.last<actors::messages::part_written>().problem.empty());
}

TEST_CASE("a slow disk that makes progress is not reported as stalled") {
  stalled_disk here;
  auto search = std::make_shared<answer<actors::messages::found_on_disk>>();
  auto asker = here.actors.system().spawn([&](caf::event_based_actor* self) {
    self->request(here.writer, caf::infinite, actors::messages::find_on_disk{})
        .then([search](const actors::messages::found_on_disk& found) { search->value = found; },
              [search](const caf::error& problem) { search->problem = actors::actor::describe(problem); });
  });
  here.actors.run();
  for (int minute = 0; minute < 30; ++minute) {
    for (int piece = 0; piece < 10; ++piece) {
      here.actors.advance(6s);
      ++*here.progress;
    }
    REQUIRE_FALSE(search->value);
    REQUIRE(search->problem.empty());
  }
  here.actors.send(here.slow, actors::messages::found_on_disk{});
  CHECK(search->value);
  CHECK(here.log.str().empty());
}

TEST_CASE("after the limit requests to a stalled disk fail, and the disk is used again once it continues") {
  stalled_disk here;
  here.write(1);
  here.write(2);
  auto search =
      ask<actors::messages::found_on_disk>(here.actors, here.writer, actors::messages::find_on_disk{});
  CHECK_FALSE(search.value);
  for (int look = 0; look < 13; ++look) here.actors.advance(10s);
  CHECK(here.not_written() == steps{1, 2});
  CHECK(here.count("no snapshot is written until the disk works again") == 1);
  here.write(3);
  CHECK(here.not_written() == steps{1, 2, 3});
  CHECK(ask<actors::messages::found_on_disk>(here.actors, here.writer, actors::messages::find_on_disk{})
            .problem.find("stalled") != std::string::npos);
  here.finish_write();  // it is too late for this one
  CHECK(here.scheduler.all<actors::messages::part_written>().size() == 3);
  here.write(4);
  here.finish_write();
  CHECK(here.scheduler.last<actors::messages::part_written>().step == 4);
  CHECK(here.scheduler.last<actors::messages::part_written>().problem.empty());
}

TEST_CASE("states that wait for the disk are dropped with their generation") {
  stalled_disk here;
  here.write(1);
  here.write(2);
  here.actors.send(here.writer, actors::messages::writer_generation{2, here.scheduler.handle()});
  here.finish_write();
  CHECK(here.disk->begun.size() == 1);
  CHECK(here.scheduler.all<actors::messages::part_written>().empty());
}

TEST_CASE("what a disk that ended was asked for is not answered: the next snapshot writer is asked again") {
  stalled_disk here;
  here.write(10);
  caf::anon_send_exit(here.slow, caf::exit_reason::kill);
  here.actors.run();
  here.write(11);
  CHECK(here.not_written().empty());
  stalled_disk other;
  caf::anon_send_exit(other.slow, caf::exit_reason::kill);
  other.actors.run();
  other.write(10);
  other.write(11);
  CHECK(other.not_written().empty());
  CHECK(ask<actors::messages::found_on_disk>(other.actors, other.writer, actors::messages::find_on_disk{})
            .problem.empty());
  CHECK(other.log.str().empty());
}
