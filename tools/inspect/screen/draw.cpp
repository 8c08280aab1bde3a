#include "inspect/screen/draw.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::array view_names = {"actors", "timeline", "rates", "findings", "log"};
constexpr std::array order_names = {"tree", "state", "restarts", "mailbox"};

/// Seconds from a Unix time to the snapshot.
std::string ago(const job_snapshot& job, const json& row, const char* name) {
  return time_text((static_cast<double>(job.at_ms) - number_in(row, name)) / 1000);
}

std::string loss_text(const json& job) {
  if (!has_number(job, "loss")) return {};
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "  loss %.4g", number_in(job, "loss"));
  return text.data();
}

/// The rows that are shown of a list, so that the selected one is among them.
screen window_of(const screen& rows, std::size_t selected, std::size_t num_rows) {
  auto first = selected < num_rows ? 0 : selected - num_rows + 1;
  screen shown;
  for (auto at = first; at < rows.size() && shown.size() < num_rows; ++at) shown.push_back(rows[at]);
  return shown;
}

/// Whether this is what is left of lost processes, see snapshot_of_lost_processes.
bool is_of_lost(const job_snapshot& job) { return text_in(job.part("job"), "state") == "lost"; }

screen_row keys_of(const view_state& shown, std::size_t columns) {
  if (shown.is_filtering)
    return {fitted("filter: " + shown.filter + "_   (enter: done, escape: none)", columns)};
  if (shown.is_open) return {fitted("escape or enter: back   q: quit", columns), row_style::faint};
  std::string text = "1-5 tab: view  up down: move  enter: open  /: filter  ";
  if (shown.view == inspect_view::actors)
    text += std::string("s: sort (") + order_names.at(static_cast<std::size_t>(shown.order)) + ")  ";
  return {fitted(text + "q: quit", columns), row_style::faint};
}

/// At least one row where there are two. "..." says that notes were cut.
screen wrapped_notes(const screen& notes, screen_size size) {
  screen rows;
  for (const auto& note : notes)
    for (auto& line : wrapped(note.text, size.columns)) rows.push_back({std::move(line), note.style});
  if (rows.empty()) rows.push_back({"", row_style::bad});
  if (auto most = size.rows / 2; rows.size() > most) {
    rows.resize(most);
    if (most > 0) rows.back().text = fitted(left(rows.back().text, size.columns) + " ", size.columns);
  }
  return rows;
}

screen_row tabs_of(const view_state& shown, const job_snapshot& job, std::size_t columns) {
  std::string text;
  for (std::size_t i = 0; i < view_names.size(); ++i) {
    bool is_shown = i == static_cast<std::size_t>(shown.view);
    auto name = std::to_string(i + 1) + " " + view_names.at(i);
    if (i == static_cast<std::size_t>(inspect_view::findings))
      name += " (" + std::to_string(job.rows("findings").size()) + ")";
    text += is_shown ? "[" + name + "] " : " " + name + "  ";
  }
  if (!shown.filter.empty()) text += " filter: " + shown.filter;
  return {fitted(text, columns)};
}

/// What a job that trains says when it does no steps any more: "no step for 20.0 s". Empty: it does.
std::string idle_text(const json& job) {
  bool is_training = text_in(job, "state") == "running" && text_in(job, "call_kind") == "train";
  bool is_paused = job.contains("is_paused") && job["is_paused"] == true;
  if (!is_training || is_paused || number_in(job, "steps_per_s", -1) != 0) return {};
  if (!has_number(job, "newest_step_ms") || !has_number(job, "updated_ms")) return {};
  auto silent_ms = number_in(job, "updated_ms") - number_in(job, "newest_step_ms");
  return "no step for " + time_text(silent_ms / 1000);
}

}  // namespace

drawn_list draw_findings(const job_snapshot& job, std::size_t columns) {
  drawn_list drawn;
  if (job.rows("findings").empty()) {
    drawn.headings = {{fitted("nothing is wrong, as far as can be seen", columns), row_style::faint}};
    return drawn;
  }
  drawn.headings = {
      {fitted(left("finding", 22) + " " + left("since", 9) + "  what", columns), row_style::heading}};
  for (const auto& one : job.rows("findings")) {
    drawn.rows.push_back({fitted(left(text_in(one, "kind", "?"), 22) + " " +
                                     left(ago(job, one, "since_ms"), 9) + "  " + text_in(one, "text"),
                                 columns),
                          row_style::bad});
    std::vector<std::string> lines;
    for (const auto& [name, value] : one.items())
      if (!value.is_null())
        lines.push_back(left(name, 10) + " " + (value.is_string() ? value.get<std::string>() : value.dump()));
    drawn.details.push_back(std::move(lines));
  }
  return drawn;
}

drawn_list draw_log(const job_snapshot& job, std::size_t columns) {
  drawn_list drawn;
  const auto& log = job.part("log");
  auto lines = log.find("lines");
  bool has_lines = lines != log.end() && lines->is_array() && !lines->empty();
  auto what = is_of_lost(job) ? "the last events of lost processes, the newest first"
              : has_lines     ? "the log of rank 0, the newest line first"
                              : "rank 0 has logged nothing";
  drawn.headings = {{fitted(what, columns), row_style::heading}};
  if (!has_lines) return drawn;
  for (auto one = lines->rbegin(); one != lines->rend(); ++one) {
    auto level = text_in(*one, "level");
    bool is_bad = level == "error" || level == "critical";
    drawn.rows.push_back({fitted(left(ago(job, *one, "at_ms") + " ago", 14) + " " + left(level, 8) + " " +
                                     text_in(*one, "text"),
                                 columns),
                          is_bad ? row_style::bad : row_style::plain});
    drawn.details.push_back({text_in(*one, "text")});
  }
  return drawn;
}

drawn_list draw_list(const job_snapshot& job, const view_state& shown, std::size_t columns) {
  auto drawn = shown.view == inspect_view::actors     ? draw_actors(job, shown, columns)
               : shown.view == inspect_view::timeline ? draw_timeline(job, columns)
               : shown.view == inspect_view::rates    ? draw_rates(job, columns)
               : shown.view == inspect_view::findings ? draw_findings(job, columns)
                                                      : draw_log(job, columns);
  if (shown.filter.empty()) return drawn;
  drawn_list kept;
  kept.headings = drawn.headings;
  for (std::size_t i = 0; i < drawn.rows.size(); ++i) {
    if (drawn.rows[i].text.find(shown.filter) == std::string::npos) continue;
    kept.rows.push_back(std::move(drawn.rows[i]));
    kept.details.push_back(std::move(drawn.details[i]));
    if (!drawn.actors.empty()) kept.actors.push_back(std::move(drawn.actors[i]));
  }
  return kept;
}

screen draw_job(const job_snapshot& job, std::size_t columns) {
  const auto& known = job.part("job");
  if (known.empty()) return {{fitted("nothing is known of the job yet", columns), row_style::heading}, {}};
  if (is_of_lost(job)) return {{left(text_in(known, "job_id"), columns), row_style::heading}, {}};
  auto state = text_in(known, "state", "starting");
  if (auto kind = text_in(known, "call_kind"); state == "running" && !kind.empty()) state = kind;
  if (auto paused = known.find("is_paused");
      paused != known.end() && paused->is_boolean() && paused->get<bool>())
    state += ", paused";
  auto text = "job " + text_in(known, "job_id", "?") + "  " + count_text(number_in(known, "world_size")) +
              " processes  generation " + count_text(number_in(known, "generation")) + "  " + state;
  auto idle = idle_text(known);
  bool has_findings = !job.rows("findings").empty();
  if (!idle.empty())
    text += ", " + idle;
  else if (!has_findings && !job.part("findings").empty() && text_in(known, "state") == "running")
    text += "  nothing is wrong";
  std::string progress;
  if (auto num = job.rows("findings").size(); num > 0) progress = "FINDINGS " + std::to_string(num) + "  ";
  if (has_number(known, "step"))
    progress += "step " + std::to_string(static_cast<std::int64_t>(number_in(known, "step"))) + " of " +
                std::to_string(static_cast<std::int64_t>(number_in(known, "end_step")));
  progress += loss_text(known);
  if (has_number(known, "steps_per_s"))
    progress += "  " + count_text(number_in(known, "steps_per_s")) + " steps/s";
  if (has_number(known, "samples_per_s"))
    progress += "  " + count_text(number_in(known, "samples_per_s")) + " samples/s";
  progress += "  recoveries " + count_text(number_in(known, "num_recoveries"));
  bool is_well = !has_findings && idle.empty();
  return {{fitted(text, columns), row_style::heading},
          {fitted(progress, columns), is_well ? row_style::plain : row_style::bad}};
}

std::string selected_actor(const drawn_list& drawn, const view_state& shown) {
  if (drawn.actors.empty()) return {};
  return drawn.actors[std::min(shown.selected, drawn.actors.size() - 1)];
}

screen draw_screen(const job_snapshot& job, const view_state& shown, const screen& notes, screen_size size) {
  auto told = wrapped_notes(notes, size);
  auto drawn = draw_list(job, shown, size.columns);
  auto selected = drawn.rows.empty() ? 0 : std::min(shown.selected, drawn.rows.size() - 1);
  auto rows = draw_job(job, size.columns);
  rows.push_back(tabs_of(shown, job, size.columns));
  screen body;
  if (shown.is_open && selected < drawn.details.size()) {
    for (const auto& line : drawn.details[selected])
      for (auto& part : wrapped(line, size.columns)) body.push_back({std::move(part)});
  } else {
    if (!drawn.rows.empty())
      drawn.rows[selected] = {left(drawn.rows[selected].text, size.columns), row_style::selected};
    for (const auto& one : drawn.headings) body.push_back(one);
    auto used = rows.size() + body.size() + told.size() + 1;
    for (auto& one : window_of(drawn.rows, selected, size.rows > used ? size.rows - used : 0))
      body.push_back(std::move(one));
  }
  for (auto& one : body) rows.push_back(std::move(one));
  rows.resize(size.rows > told.size() ? size.rows - told.size() - 1 : 0);
  for (auto& one : told) rows.push_back(std::move(one));
  if (size.rows > 0) rows.push_back(keys_of(shown, size.columns));
  return rows;
}

screen draw_all(const job_snapshot& job, std::size_t columns) {
  auto rows = draw_job(job, columns);
  rows.emplace_back();
  std::vector<inspect_view> views = {inspect_view::actors, inspect_view::timeline, inspect_view::rates};
  if (is_of_lost(job)) views = {inspect_view::actors, inspect_view::log};
  if (job.rows("findings").empty() && !is_of_lost(job))
    rows.push_back(draw_findings(job, columns).headings.at(0));
  for (const auto& one : job.rows("findings"))
    for (auto& line : wrapped(
             text_in(one, "kind", "?") + " since " + ago(job, one, "since_ms") + ": " + text_in(one, "text"),
             columns))
      rows.push_back({std::move(line), row_style::bad});
  for (auto view : views) {
    view_state shown;
    shown.view = view;
    auto drawn = draw_list(job, shown, columns);
    rows.emplace_back();
    for (auto& one : drawn.headings) rows.push_back(std::move(one));
    for (auto& one : drawn.rows) rows.push_back(std::move(one));
  }
  return rows;
}

}  // namespace troupe
