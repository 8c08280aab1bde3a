#include "inspect/screen/draw.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <sstream>

#include "tools/inspect/told_job.hpp"

using namespace troupe;
using namespace troupe::testing;

namespace {

/// Each row with the letter of its style before it.
std::string text_of(const screen& rows) {
  constexpr std::string_view letters = "phsbf";
  std::string text;
  for (const auto& row : rows) {
    text += std::string(1, letters[static_cast<std::size_t>(row.style)]) + " " + row.text;
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

/// A screen in the folder screens/ beside this file.
std::string golden(const std::string& name) {
  std::ifstream file(std::string(GOLDEN_SCREENS) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

screen notes(const std::string& text) { return text.empty() ? screen() : screen{{text, row_style::bad}}; }

view_state view_of(inspect_view view) {
  view_state shown;
  shown.view = view;
  return shown;
}

}  // namespace

TEST_CASE("the views of a job fill a terminal of 24 rows and 80 columns") {
  auto told = told_job_with_finding();
  auto drawn = [&](inspect_view view, const char* note = "") {
    return text_of(draw_screen(told, view_of(view), notes(note), {}));
  };
  CHECK(drawn(inspect_view::actors) == golden("actors.txt"));
  CHECK(drawn(inspect_view::timeline, "127.0.0.1:80: Connection refused") == golden("timeline.txt"));
  CHECK(drawn(inspect_view::rates) == golden("rates.txt"));
  CHECK(drawn(inspect_view::findings) == golden("findings.txt"));
  CHECK(drawn(inspect_view::log) == golden("log.txt"));
}

TEST_CASE("a job that does no steps any more is not shown as one that trains") {
  auto told = told_job();
  auto& job = told.parts["job"];
  auto drawn = [&] { return draw_job(told, 80); };
  CHECK(drawn()[0].text.find("train  nothing is wrong") != std::string::npos);
  CHECK(drawn()[1].style == row_style::plain);
  job["steps_per_s"] = 0;
  job["newest_step_ms"] = told.at_ms - 20'000;
  CHECK(drawn()[0].text.find("train, no step for 20.0 s") != std::string::npos);
  CHECK(drawn()[0].text.find("nothing is wrong") == std::string::npos);
  CHECK(drawn()[1].text.find("  0 steps/s") != std::string::npos);
  CHECK(drawn()[1].style == row_style::bad);
  job["is_paused"] = true;
  CHECK(drawn()[0].text.find("no step") == std::string::npos);
}

TEST_CASE("all of a job is one text for --once") {
  CHECK(text_of(draw_all(told_job(), 80)) == golden("once.txt"));
  CHECK(text_of(draw_all(told_job_with_finding(), 60)) == golden("once_narrow.txt"));
}

TEST_CASE("a row that is opened shows all that is known of it") {
  auto shown = view_of(inspect_view::findings);
  shown.is_open = true;
  CHECK(text_of(draw_screen(told_job_with_finding(), shown, {}, {14, 50})) == golden("opened.txt"));
}

TEST_CASE("what is told of commands takes as many rows as it needs, up to half of the terminal") {
  view_state shown;
  shown.selected = 3;
  screen told = {
      {"kill 1#0/stage/1: refused: this is the job's only process, and stage 1 of rank 0 has its "
       "state, which no other one keeps: the work would be lost. With --snapshot-dir FOLDER it would "
       "come back from there",
       row_style::bad},
      {"pause: done: the job is paused, and all devices stand"}};
  CHECK(text_of(draw_screen(told_job(), shown, told, {})) == golden("commands.txt"));
  auto small = draw_screen(told_job(), shown, told, {6, 80});
  CHECK(small[4].text.ends_with("..."));
  CHECK(small[3].text.starts_with("  has its state"));
}

TEST_CASE("actors are sorted, filtered, and scrolled to the one that is selected") {
  view_state shown;
  shown.order = actor_order::restarts;
  CHECK(draw_list(told_job(), shown, 80).rows[0].text.starts_with("0#0/device/0"));
  shown.order = actor_order::mailbox;
  CHECK(draw_list(told_job(), shown, 80).rows[1].text.starts_with("0#0/supervisor"));
  shown.order = actor_order::state;
  CHECK(draw_list(told_job(), shown, 80).rows[0].text.starts_with("1#0/supervisor"));
  shown = {};
  shown.filter = "device";
  CHECK(draw_list(told_job(), shown, 80).rows.size() == 2);
  shown = {};
  shown.selected = 5;
  auto rows = draw_screen(told_job(), shown, {}, {8, 80});
  CHECK(rows[5].text.starts_with("1#0/supervisor"));
  CHECK(rows[5].style == row_style::selected);
}

TEST_CASE("every screen has its size, whatever is told, and steers no terminal") {
  auto hostile = told_job();
  hostile.parts["job"] = {{"job_id", 7}, {"step", "x"}, {"is_paused", 3}};
  hostile.parts["log"] = {{"lines", {{{"text", "\x1b[2J\xff\n"}, {"level", nullptr}}}}};
  hostile.parts["actors"] = {{"actors", {1, nullptr, {{"id", {1, 2}}}}}};
  hostile.parts["devices"] = 3;
  hostile.parts["timeline"] = {{"measured", {{"makespan", 0}, {"devices", {1, 2}}}}};
  hostile.parts["metrics"] = {{"steps", {{{"loss", "x"}}, 7}}};
  for (const auto& told : {told_job(), told_job_with_finding(), hostile, job_snapshot()})
    for (std::size_t rows = 0; rows < 30; rows += 3)
      for (std::size_t columns = 0; columns < 130; columns += 13)
        for (int view = 0; view < num_inspect_views; ++view)
          for (bool is_open : {false, true}) {
            auto shown = view_of(static_cast<inspect_view>(view));
            shown.is_open = is_open;
            shown.selected = 3;
            auto drawn = draw_screen(told, shown, {{"a note of some words"}, {"another"}}, {rows, columns});
            CHECK(drawn.size() == rows);
            for (const auto& row : drawn) {
              CHECK(row.text.size() <= columns);
              CHECK(printable(row.text) == row.text);
            }
          }
}

TEST_CASE("counts, rates and times are short") {
  CHECK(count_text(0) == "0");
  CHECK(count_text(999) == "999");
  CHECK(count_text(1234) == "1.2k");
  CHECK(count_text(12'345'678) == "12.3M");
  CHECK(rate_text(1500) == "1.5 kB/s");
  CHECK(rate_text(7) == "7 B/s");
  CHECK(time_text(0.0123) == "12.3 ms");
  CHECK(time_text(4.25) == "4.2 s");
  CHECK(time_text(600) == "10 min");
  CHECK(time_text(7200) == "2.0 h");
}
