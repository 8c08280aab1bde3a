#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "inspect/screen/draw.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// Values as letters of rising height, the newest on the right.
std::string curve_of(const std::vector<double>& values, std::size_t columns) {
  constexpr std::string_view heights = "_.-=+*#";
  auto first = values.size() > columns ? values.size() - columns : 0;
  std::vector<double> shown(values.begin() + static_cast<std::ptrdiff_t>(first), values.end());
  if (shown.empty()) return {};
  auto [least, most] = std::ranges::minmax(shown);
  std::string curve;
  for (auto one : shown) {
    auto share = most > least ? (one - least) / (most - least) : 0;
    curve += heights[static_cast<std::size_t>(std::lround(share * static_cast<double>(heights.size() - 1)))];
  }
  return curve;
}

void add_curve(drawn_list& to, const job_snapshot& job, const char* name, const std::string& label,
               std::size_t columns, const std::string& newest) {
  const auto& metrics = job.part("metrics");
  std::vector<double> values;
  if (auto steps = metrics.find("steps"); steps != metrics.end() && steps->is_array())
    for (const auto& one : *steps)
      if (has_number(one, name)) values.push_back(number_in(one, name));
  constexpr std::size_t label_columns = 12, newest_columns = 14;
  auto width =
      columns > label_columns + newest_columns + 4 ? columns - label_columns - newest_columns - 2 : 4;
  to.rows.push_back({fitted(left(label, label_columns) + left(curve_of(values, width), width) + "  " +
                                (values.empty() ? "-" : newest),
                            columns)});
  to.details.emplace_back();
}

/// A process whose threads wait for cores that others have.
void add_core_wait(drawn_list& to, const json& process, std::size_t columns) {
  constexpr double worth_saying = 0.1;
  auto waiting = number_in(process, "cores_waited_for");
  if (waiting < worth_saying) return;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", waiting);
  to.rows.push_back({fitted("rank " + left(std::to_string(static_cast<int>(number_in(process, "rank"))), 4) +
                                " lacks cores: " + text.data() + " of its threads wait for one",
                            columns)});
  to.details.emplace_back();
}

/// A row with a name before it.
void add_fact(drawn_list& to, const std::string& name, const std::string& text, std::size_t columns) {
  constexpr std::size_t label_columns = 15;
  to.rows.push_back({fitted(left(name, label_columns) + text, columns)});
  to.details.emplace_back();
}

void add_memory(drawn_list& to, const json& process, std::size_t columns) {
  auto found = process.find("memory");
  if (found == process.end() || !found->is_object()) return;
  const auto& memory = *found;
  auto tensors = "tensors " + usage::bytes_text(number_in(memory, "current_bytes")) + ", at most " +
                 usage::bytes_text(number_in(memory, "peak_bytes"));
  auto resident = has_number(memory, "resident_bytes")
                      ? "; process " + usage::bytes_text(number_in(memory, "resident_bytes"))
                      : std::string();
  to.rows.push_back({fitted("rank " + left(std::to_string(static_cast<int>(number_in(process, "rank"))), 4) +
                                " memory: " + tensors + resident,
                            columns)});
  to.details.emplace_back();
  for (const auto& [name, value] : memory.items())
    to.details.back().push_back(left(name, 26) + " " + value.dump());
}

/// What one process sends to another; null is "-".
void add_link(drawn_list& to, const json& link, std::size_t columns) {
  auto shown = [&](const char* name, auto text_of) {
    return has_number(link, name) ? text_of(number_in(link, name)) : std::string("-");
  };
  auto rank = [&](const char* name) { return std::to_string(static_cast<int>(number_in(link, name))); };
  to.rows.push_back({fitted("rank " + left(rank("from"), 4) + " to " + left(rank("to"), 4) +
                                right(shown("bytes_per_s", rate_text), 11) + "," +
                                right(shown("frames_per_s", count_text), 6) + " messages/s," +
                                right(shown("tensors_in_flight", count_text), 6) + " tensors in flight",
                            columns)});
  std::vector<std::string> lines;
  for (const auto& [name, value] : link.items()) lines.push_back(left(name, 26) + " " + value.dump());
  to.details.push_back(std::move(lines));
}

std::string number_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", number);
  return text.data();
}

/// The newest of a metric; 0 where there is none.
double newest_of(const job_snapshot& job, const char* name) {
  const auto& metrics = job.part("metrics");
  auto steps = metrics.find("steps");
  if (steps == metrics.end() || !steps->is_array() || steps->empty()) return 0;
  return number_in(steps->back(), name);
}

}  // namespace

drawn_list draw_rates(const job_snapshot& job, std::size_t columns) {
  drawn_list drawn;
  drawn.headings = {{fitted("the newest steps, and what each process sends to others in a second", columns),
                     row_style::heading}};
  add_curve(drawn, job, "loss", "loss", columns, number_text(newest_of(job, "loss")));
  add_curve(drawn, job, "step_s", "step", columns, time_text(newest_of(job, "step_s")));
  add_curve(drawn, job, "busy_s", "computing", columns, time_text(newest_of(job, "busy_s")));
  const auto& known = job.part("job");
  if (has_number(known, "learning_rate"))
    add_fact(drawn, "learning rate", number_text(number_in(known, "learning_rate")), columns);
  if (has_number(known, "seconds_left"))
    add_fact(drawn, "time left", time_text(number_in(known, "seconds_left")) + " of this call", columns);
  for (const auto& link : job.rows("links")) add_link(drawn, link, columns);
  for (const auto& process : job.rows("processes")) add_core_wait(drawn, process, columns);
  for (const auto& process : job.rows("processes")) add_memory(drawn, process, columns);
  return drawn;
}

}  // namespace troupe
