#include "troupe/snapshot_writer/snapshot_writer_actor.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "actors/virtual_actors.hpp"
#include "support/bits.hpp"
#include "support/temp_folder.hpp"
#include "troupe/actor/actor_of.hpp"
#include "troupe/job/metrics_tensor.hpp"
#include "troupe/messages/scheduler.hpp"
#include "troupe/snapshot_writer/disk_actor.hpp"
#include "troupe/wire/packed_state.hpp"

using namespace troupe;
using namespace troupe::actors::snapshot_writer;
using namespace troupe::testing;
using namespace std::chrono_literals;

namespace {

std::vector<named_tensor> state_of(float value) { return {{"weight", tensor::full({3}, value)}}; }

tensor packed(float value) {
  wire::packed_state_pool pool;
  return pack_state(state_of(value), pool);
}

struct one_snapshot_writer {
  virtual_actors actors;
  temp_folder folder;
  std::ostringstream log;
  probe scheduler{actors};
  caf::actor writer;

  explicit one_snapshot_writer(const std::filesystem::path& below = "snapshots",
                               const std::string& job = "job-1", bool resume = false) {
    start(folder.path() / below, job, resume);
    begin(1);
  }
  void start(const std::filesystem::path& where, const std::string& job, bool resume) {
    auto logger =
        std::make_shared<spdlog::logger>("actors", std::make_shared<spdlog::sinks::ostream_sink_mt>(log));
    snapshot_writer_options options;
    options.host = "here";
    options.log = logger;
    if (!where.empty()) {
      disk_options disk;
      disk.job_id = job;
      disk.numeric_class = "class";
      disk.num_stages = 2;
      disk.resume = resume;
      disk.finite_only = true;
      disk.store.folder = where;
      disk.log = logger;
      options.disk = actors.spawn<actors::actor::actor_of<disk_state>>(disk);
    }
    writer = actors.spawn<actors::actor::actor_of<snapshot_writer_state>>(options);
  }
  void begin(std::uint64_t generation) {
    actors.send(writer, actors::messages::writer_generation{generation, scheduler.handle()});
  }
  actors::messages::part_written write(std::uint64_t step, int stage, std::uint64_t generation = 1) {
    actors.send(
        writer,
        actors::messages::write_part{
            generation, step, {{stage}}, packed(static_cast<float>(step) + static_cast<float>(stage))});
    return scheduler.last<actors::messages::part_written>();
  }
  snapshot::snapshot_manifest manifest_of(const std::vector<actors::messages::part_written>& parts,
                                          const std::string& job = "job-1") {
    snapshot::snapshot_manifest manifest;
    manifest.job_id = job;
    manifest.step = parts[0].step;
    manifest.generation = 1;
    manifest.num_stages = 2;
    manifest.numeric_class = "class";
    for (const auto& part : parts) manifest.parts.push_back(part.entry);
    return manifest;
  }
  /// Writes a whole snapshot.
  void snapshot(std::uint64_t step, const std::string& job = "job-1") {
    auto first = write(step, 0);
    auto manifest = manifest_of({first, write(step, 1)}, job);
    REQUIRE(ask<actors::messages::snapshot_committed>(actors, writer,
                                                      actors::messages::commit_snapshot{manifest, nullptr, 0})
                .value);
  }
  std::optional<snapshot::snapshot_manifest> find() {
    auto found = ask<actors::messages::found_on_disk>(actors, writer, actors::messages::find_on_disk{});
    REQUIRE(found.value);
    return found.value->manifest;
  }
  answer<actors::messages::stage_copy> read(std::uint64_t step, int stage) {
    return ask<actors::messages::stage_copy>(
        actors, writer, actors::messages::read_from_disk{step, {{stage}}, whole_contents(state_of(0))});
  }
  std::filesystem::path file_of(std::uint64_t step) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (entry.path().extension() == ".part" &&
          entry.path().parent_path().filename().string().ends_with(std::to_string(step)))
        return entry.path();
    throw std::runtime_error("no part of step " + std::to_string(step));
  }
};

}  // namespace

// ---- disk

TEST_CASE("a written part is reported to the scheduler with its manifest entry") {
  one_snapshot_writer here;
  auto written = here.write(10, 1);
  CHECK(written.generation == 1);
  CHECK(written.step == 10);
  CHECK(written.entry.part == layout::part_id{{.stage = 1}});
  CHECK(written.problem.empty());
  CHECK(written.entry.host == "here");
  CHECK(written.entry.size_bytes == std::filesystem::file_size(here.file_of(10)));
  CHECK_FALSE(written.entry.checksum.empty());
  CHECK_FALSE(here.find());  // no manifest, no snapshot
}

TEST_CASE("a committed snapshot is found and its stages are read back, bit for bit") {
  one_snapshot_writer here;
  here.snapshot(10);
  here.snapshot(20);
  auto found = here.find();
  REQUIRE(found);
  CHECK(found->step == 20);
  for (int stage = 0; stage < 2; ++stage) {
    auto copy = here.read(20, stage);
    REQUIRE(copy.value);
    CHECK(same_bits(wire::unpack_state(copy.value->packed), state_of(20 + static_cast<float>(stage))));
  }
  CHECK(here.read(10, 0).value);
}

namespace {

/// Writes the last stage's part of a replica of step 10, with these metrics at its end.
actors::messages::part_written write_last(one_snapshot_writer& here, int replica,
                                          const named_tensor& metrics) {
  wire::packed_state_pool pool;
  auto state = state_of(1);
  state.push_back(metrics);
  here.actors.send(here.writer, actors::messages::write_part{
                                    1, 10, {{.stage = 1, .replica = replica}}, pack_state(state, pool)});
  return here.scheduler.last<actors::messages::part_written>();
}

std::vector<named_tensor> read_last(one_snapshot_writer& here, int replica, int num_replicas) {
  auto copy = ask<actors::messages::stage_copy>(
      here.actors, here.writer,
      actors::messages::read_from_disk{
          10, {{.stage = 1, .replica = replica}}, whole_contents(state_of(0)), num_replicas});
  INFO(copy.problem);
  REQUIRE(copy.value);
  return wire::unpack_state(copy.value->packed);
}

}  // namespace

TEST_CASE("the metrics of all replicas come from the one part that has them, or from a part of each") {
  program::step_metrics first{1, 2, 3}, second{4, 5, 6};
  auto all = actors::job::replica_metrics_tensor({first, second});
  for (bool is_of_all : {true, false}) {
    one_snapshot_writer here;
    std::vector<actors::messages::part_written> parts{here.write(10, 0)};
    parts.push_back(write_last(here, 0, is_of_all ? all : actors::job::metrics_tensor(first)));
    if (!is_of_all) parts.push_back(write_last(here, 1, actors::job::metrics_tensor(second)));
    auto manifest = here.manifest_of(parts);
    REQUIRE(ask<actors::messages::snapshot_committed>(here.actors, here.writer,
                                                      actors::messages::commit_snapshot{manifest, nullptr, 0})
                .value);
    for (int replica : {0, 1}) {
      auto state = read_last(here, replica, 2);
      REQUIRE(state.size() == 2);
      CHECK(same_bits(std::vector{state[1]}, std::vector{all}));
    }
    auto none = ask<actors::messages::stage_copy>(
        here.actors, here.writer,
        actors::messages::read_from_disk{10, {{.stage = 1}}, whole_contents(state_of(0)), 3});
    CHECK_THAT(none.problem, Catch::Matchers::ContainsSubstring("metrics of replica 2"));
  }
}

TEST_CASE("a snapshot stores the results of all calls and returns them when it is read") {
  one_snapshot_writer here;
  auto log = std::make_shared<actors::job::call_log>(), read = std::make_shared<actors::job::call_log>();
  for (std::uint32_t index = 0; index < 1000; ++index) {
    actors::job::call_result result;
    result.index = index;
    result.steps_done = index / 10;
    log->add(result);
  }
  auto first = here.write(10, 0);
  auto manifest = here.manifest_of({first, here.write(10, 1)});
  REQUIRE(ask<actors::messages::snapshot_committed>(here.actors, here.writer,
                                                    actors::messages::commit_snapshot{manifest, log, 990})
              .value);
  auto found = here.find();
  REQUIRE(found);
  REQUIRE(ask<actors::messages::results_read>(here.actors, here.writer,
                                              actors::messages::read_results{*found, read})
              .value);
  CHECK(read->size() == 990);
  CHECK(read->at(5) == log->at(5));
  CHECK(read->newest() == log->at(989));
  auto file = here.folder.path() / "snapshots/step-000000000010/calls.part";
  std::ofstream(file, std::ios::app) << "appended by a writer that was killed";
  auto cut = std::make_shared<actors::job::call_log>();
  REQUIRE(ask<actors::messages::results_read>(here.actors, here.writer,
                                              actors::messages::read_results{*found, cut})
              .value);
  CHECK(cut->size() == 990);
  std::filesystem::resize_file(file, 40);
  auto again = ask<actors::messages::results_read>(here.actors, here.writer,
                                                   actors::messages::read_results{*found, read});
  CHECK(again.problem.find("calls.part cannot be used") != std::string::npos);
}

TEST_CASE("what a snapshot adds to the results of calls does not grow with the number of calls before") {
  one_snapshot_writer here;
  auto log = std::make_shared<actors::job::call_log>();
  auto snapshot = [&](std::uint64_t step) {
    while (log->size() < 100 * step) {
      actors::job::call_result result;
      result.index = static_cast<std::uint32_t>(log->size());
      log->add(result);
    }
    auto first = here.write(step, 0);
    auto manifest = here.manifest_of({first, here.write(step, 1)});
    REQUIRE(ask<actors::messages::snapshot_committed>(
                here.actors, here.writer, actors::messages::commit_snapshot{manifest, log, log->size()})
                .value);
    return here.folder.path() / ("snapshots/step-00000000000" + std::to_string(step)) / "calls.part";
  };
  snapshot(1);
  auto second = snapshot(2);
  auto kept = here.folder.path() / "kept";
  std::filesystem::create_hard_link(second, kept);
  snapshot(3);
  CHECK(std::filesystem::equivalent(snapshot(4), kept));
  auto read = std::make_shared<actors::job::call_log>();
  REQUIRE(ask<actors::messages::results_read>(here.actors, here.writer,
                                              actors::messages::read_results{*here.find(), read})
              .value);
  CHECK(read->size() == 400);
  CHECK(read->newest() == log->newest());
}

TEST_CASE("a state with a non-finite tensor is not written, and the tensor is named") {
  one_snapshot_writer here;
  here.actors.send(here.writer,
                   actors::messages::write_part{1, 5, {}, packed(std::numeric_limits<float>::quiet_NaN())});
  auto written = here.scheduler.last<actors::messages::part_written>();
  CHECK_THAT(written.problem, Catch::Matchers::ContainsSubstring("infinite or NaN, first weight"));
  CHECK(written.entry.file.empty());
  CHECK(here.write(6, 0).problem.empty());
}

TEST_CASE(
    "a tensor that is infinite and unchanged since the start is written; one that became infinite, or "
    "changed, is not") {
  one_snapshot_writer here;
  auto infinity = std::numeric_limits<float>::infinity();
  auto begun = std::make_shared<const std::vector<named_tensor>>(state_of(-infinity));
  auto written = [&](std::uint64_t step, float value, auto began_with) {
    here.actors.send(here.writer, actors::messages::write_part{1, step, {}, packed(value), began_with});
    return here.scheduler.last<actors::messages::part_written>().problem;
  };
  CHECK(written(5, -infinity, begun).empty());
  CHECK_THAT(written(6, infinity, begun), Catch::Matchers::ContainsSubstring("first weight"));
  CHECK_THAT(written(7, std::numeric_limits<float>::quiet_NaN(), begun),
             Catch::Matchers::ContainsSubstring("first weight"));
  auto other = std::make_shared<const std::vector<named_tensor>>(
      1, named_tensor{"mask", state_of(-infinity)[0].value});
  CHECK_THAT(written(8, -infinity, other), Catch::Matchers::ContainsSubstring("first weight"));
}

TEST_CASE("parts of another generation are not written") {
  one_snapshot_writer here;
  here.begin(3);
  for (std::uint64_t generation : {2, 4})
    here.actors.send(here.writer, actors::messages::write_part{generation, 10, {}, packed(1)});
  CHECK(here.scheduler.all<actors::messages::part_written>().empty());
  CHECK_THROWS(here.file_of(10));
}

TEST_CASE(
    "a folder that cannot be written is reported in part_written and as a warning, and does not end the "
    "writer") {
  one_snapshot_writer here("file/snapshots");
  std::ofstream(here.folder.path() / "file") << "no folder";
  auto written = here.write(10, 1);
  CHECK_FALSE(written.problem.empty());
  CHECK(written.entry.file.empty());
  CHECK(written.step == 10);
  CHECK(here.log.str().find("step=10 part=\"stage 1\"") != std::string::npos);
  std::filesystem::remove(here.folder.path() / "file");
  CHECK(here.write(11, 1).problem.empty());
}

TEST_CASE("a manifest that cannot be written is an error in the answer") {
  one_snapshot_writer here;
  auto first = here.write(10, 0);
  auto manifest = here.manifest_of({first, here.write(10, 1)});
  std::filesystem::remove_all(here.folder.path() / "snapshots");
  std::ofstream(here.folder.path() / "snapshots") << "no folder";
  auto committed = ask<actors::messages::snapshot_committed>(
      here.actors, here.writer, actors::messages::commit_snapshot{manifest, nullptr, 0});
  CHECK_FALSE(committed.value);
  CHECK_FALSE(committed.problem.empty());
}

TEST_CASE("a damaged snapshot is named and set aside, and the previous one is found") {
  one_snapshot_writer here;
  here.snapshot(10);
  here.snapshot(20);
  std::filesystem::resize_file(here.file_of(20), 40);
  auto found = here.find();
  REQUIRE(found);
  CHECK(found->step == 10);
  CHECK(here.log.str().find(".part") != std::string::npos);
  CHECK(std::filesystem::exists(here.folder.path() / "snapshots" / "set-aside-step-000000000020"));
}

TEST_CASE("if no snapshot is usable, each one is named and none is changed") {
  one_snapshot_writer here;
  here.snapshot(10);
  std::filesystem::resize_file(here.file_of(10), 40);
  auto found =
      ask<actors::messages::found_on_disk>(here.actors, here.writer, actors::messages::find_on_disk{});
  REQUIRE(found.value);
  CHECK_FALSE(found.value->manifest);
  REQUIRE(found.value->unusable.size() == 1);
  CHECK(found.value->unusable[0].find("step 10") != std::string::npos);
  CHECK_NOTHROW(here.file_of(10));
}

TEST_CASE("an unfinished snapshot does not prevent a recovery") {
  one_snapshot_writer here;
  here.write(5, 0);
  auto found =
      ask<actors::messages::found_on_disk>(here.actors, here.writer, actors::messages::find_on_disk{});
  REQUIRE(found.value);
  CHECK_FALSE(found.value->manifest);
  CHECK(found.value->unusable.empty());
}

TEST_CASE("the parts of a snapshot that failed are removed") {
  one_snapshot_writer here;
  here.snapshot(10);
  here.write(20, 0);
  for (std::uint64_t step : {10, 20}) here.actors.send(here.writer, actors::messages::discard_parts{step});
  CHECK_THROWS(here.file_of(20));
  CHECK(here.find()->step == 10);
}

TEST_CASE("a part damaged after it was found is an error in the answer, and the writer keeps running") {
  one_snapshot_writer here;
  obituary of(here.actors, here.writer);
  here.snapshot(10);
  std::filesystem::resize_file(here.file_of(10), 40);
  auto stage = here.file_of(10).filename().string().find('1') != std::string::npos ? 1u : 0u;
  CHECK(here.read(10, stage).problem.find(".part") != std::string::npos);
  CHECK_FALSE(of.reason());
}

TEST_CASE("a missing snapshot is an error that names the folder") {
  one_snapshot_writer here;
  auto problem = here.read(30, 0).problem;
  CHECK(problem.find("step 30") != std::string::npos);
  CHECK(problem.find(here.folder.path().string()) != std::string::npos);
}

TEST_CASE("a folder that cannot be read is an error for a job that resumes, and the writer keeps running") {
  one_snapshot_writer here;
  here.start(here.folder.path() / "snapshots", "job-0", true);
  obituary of(here.actors, here.writer);
  std::ofstream(here.folder.path() / "snapshots") << "no folder";
  auto found =
      ask<actors::messages::found_on_disk>(here.actors, here.writer, actors::messages::find_on_disk{});
  CHECK_FALSE(found.problem.empty());
  CHECK_FALSE(here.read(1, 0).problem.empty());
  CHECK_FALSE(of.reason());
}

TEST_CASE("only a job that resumes uses the snapshots of another job") {
  one_snapshot_writer here("snapshots", "job-0");
  here.snapshot(10, "job-0");
  here.start(here.folder.path() / "snapshots", "job-1", false);
  CHECK_FALSE(here.find());
  here.start(here.folder.path() / "snapshots", "job-1", true);
  auto found = here.find();
  REQUIRE(found);
  CHECK(found->job_id == "job-0");
}

TEST_CASE("without a snapshot folder a request for snapshots answers that there are none") {
  one_snapshot_writer here;
  here.start({}, "job-1", false);
  here.begin(1);
  CHECK_FALSE(here.find());
  CHECK_FALSE(here.read(1, 0).problem.empty());
  CHECK_FALSE(
      ask<actors::messages::snapshot_committed>(here.actors, here.writer, actors::messages::commit_snapshot{})
          .problem.empty());
  here.actors.send(here.writer, actors::messages::write_part{1, 10, {}, packed(1)});
  CHECK(here.scheduler.all<actors::messages::part_written>().empty());
}

TEST_CASE("the writer reports the time since the last part that it wrote or that others reported") {
  one_snapshot_writer here;
  auto since = [&] {
    return ask<actors::messages::held_parts>(here.actors, here.writer, actors::messages::list_parts{})
        .value->since_disk_s;
  };
  here.actors.advance(30s);
  CHECK(since() == 30);
  here.write(1, 0);
  CHECK(since() == 0);
  here.actors.advance(4s);
  here.write(2, 0, 9);  // of another generation: not written
  CHECK(since() == 4);
  here.actors.send(here.writer, actors::messages::writer_generation{2, here.scheduler.handle(), 12});
  here.actors.advance(1s);
  CHECK(since() == 13);
}
