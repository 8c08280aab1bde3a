#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "support/temp_folder.hpp"
#include "support/text_of.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/trace/perfetto.hpp"
#include "troupe/trace/trace.hpp"

using Catch::Matchers::ContainsSubstring;

namespace {

nlohmann::json events_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return nlohmann::json::parse(stream).at("traceEvents");
}

/// The events of one phase: "X" spans, "i" instants, "M" names.
nlohmann::json of_phase(const nlohmann::json& events, const std::string& phase) {
  auto chosen = nlohmann::json::array();
  for (const auto& event : events)
    if (event.at("ph") == phase) chosen.push_back(event);
  return chosen;
}

void write_text(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

}  // namespace

TEST_CASE("a span is a complete event with times in microseconds and all its fields") {
  troupe::testing::temp_folder folder;
  troupe::trace::trace_recorder recorder(3);
  recorder.ring("device 3")
      .record({.begin_ns = 1'700'000'000'123'456,
               .end_ns = 1'700'000'000'125'956,
               .generation = 2,
               .step = 7,
               .stage = 1,
               .microbatch = 5,
               .kind = troupe::trace::trace_kind::backward});
  recorder.write_perfetto(folder.path() / "trace.json");
  auto spans = of_phase(events_of(folder.path() / "trace.json"), "X");
  REQUIRE(spans.size() == 1);
  CHECK(spans[0] ==
        nlohmann::json{{"ph", "X"},
                       {"name", "B"},
                       {"pid", 4},
                       {"tid", 1},
                       {"ts", 1'700'000'000'123.456},
                       {"dur", 2.5},
                       {"args", {{"generation", 2}, {"step", 7}, {"stage", 1}, {"microbatch", 5}}}});
}

TEST_CASE("an instant is an instant event, and fields that do not apply are left out") {
  troupe::testing::temp_folder folder;
  troupe::trace::trace_recorder recorder(0);
  recorder.ring("control").record({.begin_ns = 5000,
                                   .end_ns = 5000,
                                   .generation = 1,
                                   .step = 9,
                                   .kind = troupe::trace::trace_kind::view});
  recorder.write_perfetto(folder.path() / "trace.json");
  auto instants = of_phase(events_of(folder.path() / "trace.json"), "i");
  REQUIRE(instants.size() == 1);
  CHECK(instants[0] == nlohmann::json{{"ph", "i"},
                                      {"s", "t"},
                                      {"name", "view"},
                                      {"pid", 1},
                                      {"tid", 1},
                                      {"ts", 5.0},
                                      {"args", {{"generation", 1}, {"step", 9}}}});
}

TEST_CASE("process and threads have names") {
  troupe::testing::temp_folder folder;
  troupe::trace::trace_recorder recorder(2);
  recorder.ring("device \"2\"\n");
  recorder.ring("not UTF-8: \xff");
  recorder.write_perfetto(folder.path() / "trace.json");
  auto names = of_phase(events_of(folder.path() / "trace.json"), "M");
  REQUIRE(names.size() == 4);
  CHECK(names[0].at("name") == "process_name");
  CHECK(names[0].at("args").at("name") == "rank 2");
  CHECK(names[2].at("name") == "thread_name");
  CHECK(names[2].at("args").at("name") == "device \"2\"\n");
  CHECK(names[2].at("tid") == 1);
  CHECK(names[3].at("tid") == 2);
}

TEST_CASE("every kind has a name of its own") {
  std::set<std::string_view> names;
  for (int kind = 0; kind < static_cast<int>(troupe::trace::num_trace_kinds); ++kind)
    names.insert(to_string(static_cast<troupe::trace::trace_kind>(kind)));
  CHECK(names.size() == troupe::trace::num_trace_kinds);
  CHECK(to_string(troupe::trace::trace_kind::forward) == "F");
  CHECK(to_string(troupe::trace::trace_kind::copy_state) == "copy_state");
  CHECK(to_string(troupe::trace::trace_kind::step) == "step");
}

TEST_CASE("a trace is written while threads ask for rings and record") {
  troupe::testing::temp_folder folder;
  troupe::trace::trace_recorder recorder(0, 64);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&recorder, i] {
        auto& ring = recorder.ring("thread " + std::to_string(i));
        for (int k = 0; k < 1000; ++k) ring.record({.begin_ns = k, .end_ns = k + 1});
      });
    for (int i = 0; i < 5; ++i) recorder.write_perfetto(folder.path() / "trace.json");
  }
  recorder.write_perfetto(folder.path() / "trace.json");
  CHECK(of_phase(events_of(folder.path() / "trace.json"), "X").size() == 3 * 64);
}

TEST_CASE("the error of a trace that cannot be written names the file, and no file is left") {
  troupe::testing::temp_folder folder;
  troupe::trace::trace_recorder recorder(0);
  auto nowhere = folder.path() / "missing" / "trace.json";
  CHECK_THROWS_AS(recorder.write_perfetto(nowhere), std::runtime_error);
  CHECK_THROWS_WITH(recorder.write_perfetto(nowhere),
                    ContainsSubstring(nowhere.string()) && ContainsSubstring("No such file or directory"));
  std::filesystem::create_directories(folder.path() / "folder" / "inner");
  CHECK_THROWS_AS(recorder.write_perfetto(folder.path() / "folder"), troupe::bad_input);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "folder.partial"));
}

TEST_CASE("traces of several processes join into one") {
  troupe::testing::temp_folder folder;
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < 3; ++rank) {
    troupe::trace::trace_recorder recorder(rank);
    recorder.ring("device").record({.begin_ns = 1000 * rank, .end_ns = 1000 * rank + 500});
    files.push_back(folder.path() / (std::to_string(rank) + ".json"));
    recorder.write_perfetto(files.back());
  }
  troupe::trace::merge_perfetto(files, folder.path() / "all.json");
  auto spans = of_phase(events_of(folder.path() / "all.json"), "X");
  REQUIRE(spans.size() == 3);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(spans[rank].at("pid") == rank + 1);
    CHECK(spans[rank].at("ts") == static_cast<double>(rank));
  }
}

TEST_CASE("a file that is no trace is named, and nothing is written") {
  troupe::testing::temp_folder folder;
  auto joined = folder.path() / "all.json";
  auto damaged = folder.path() / "damaged.json";
  for (auto text : {"", "{\"traceEvents\":[{}", "[]", "{}", "{\"traceEvents\":3}"}) {
    CAPTURE(text);
    write_text(damaged, text);
    CHECK_THROWS_AS(troupe::trace::merge_perfetto({damaged}, joined), troupe::bad_input);
    CHECK_THROWS_WITH(troupe::trace::merge_perfetto({damaged}, joined), ContainsSubstring(damaged.string()));
  }
  CHECK_THROWS_AS(troupe::trace::merge_perfetto({folder.path() / "missing.json"}, joined), troupe::bad_input);
  CHECK_FALSE(std::filesystem::exists(joined));
}

TEST_CASE("a tensor is an arrow from the thread that sends it to the one where it arrives") {
  troupe::testing::temp_folder folder;
  troupe::trace::trace_event tensor{.begin_ns = 1000, .end_ns = 1000, .generation = 1, .step = 4, .stage = 1};
  tensor.microbatch = 2;
  tensor.detail = 1;
  tensor.call = 3;
  tensor.bytes = 64;
  auto sent = tensor, arrived = tensor;
  sent.kind = troupe::trace::trace_kind::send;
  sent.peer = 1;
  arrived.kind = troupe::trace::trace_kind::receive;
  arrived.peer = 0;
  arrived.begin_ns = arrived.end_ns = 3000;
  troupe::trace::process_events sender{.rank = 0}, receiver{.rank = 1};
  sender.threads.push_back({.name = "device 0", .events = {sent}});
  receiver.threads.push_back({.name = "device 1", .events = {arrived}});
  troupe::trace::write_perfetto({sender, receiver}, folder.path() / "trace.json");
  auto events = events_of(folder.path() / "trace.json");
  auto begins = of_phase(events, "s"), ends = of_phase(events, "f");
  REQUIRE(begins.size() == 1);
  REQUIRE(ends.size() == 1);
  CHECK(begins[0].at("id") == ends[0].at("id"));
  CHECK(begins[0].at("pid") == 1);
  CHECK(ends[0].at("pid") == 2);
  auto spans = of_phase(events, "X");
  REQUIRE(spans.size() == 2);
  CHECK(spans[0].at("args").at("bytes") == 64);
  CHECK(spans[0].at("args").at("peer") == 1);
}

TEST_CASE("of what was begun only the last, without an end, is shown") {
  troupe::testing::temp_folder folder;
  troupe::trace::process_events killed{.rank = 0, .names = {"dp"}};
  killed.threads.push_back(
      {.name = "device 0",
       .events = {{.begin_ns = 1000, .end_ns = 1000, .kind = troupe::trace::trace_kind::wait_begun},
                  {.begin_ns = 1000, .end_ns = 2000, .kind = troupe::trace::trace_kind::wait},
                  {.begin_ns = 3000,
                   .end_ns = 3000,
                   .step = 7,
                   .kind = troupe::trace::trace_kind::collective_begun,
                   .name = 1}}});
  troupe::trace::write_perfetto({killed}, folder.path() / "trace.json");
  auto events = events_of(folder.path() / "trace.json");
  CHECK(of_phase(events, "X").size() == 1);
  CHECK(of_phase(events, "X")[0].at("args").at("for") == "tensor");
  auto begun = of_phase(events, "B");
  REQUIRE(begun.size() == 1);
  CHECK(begun[0].at("args") == nlohmann::json{{"sequence", 7}, {"name", "dp"}});
}

TEST_CASE("a link that lies where the trace is written at first is replaced, and its target stays") {
  troupe::testing::temp_folder folder;
  auto precious = folder.path() / "precious", trace = folder.path() / "trace.json";
  write_text(precious, "text");
  std::filesystem::create_symlink(precious, folder.path() / "trace.json.partial");
  troupe::trace::write_perfetto({}, trace);
  CHECK(events_of(trace).empty());
  CHECK(troupe::testing::text_of(precious) == "text");
}
