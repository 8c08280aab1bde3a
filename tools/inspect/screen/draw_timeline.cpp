#include <algorithm>
#include <cmath>
#include <string>

#include "inspect/screen/draw.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

/// The letter of an action's kind: "12F0" is 'F'.
char letter_of(const std::string& action) {
  auto at = action.find_first_not_of("0123456789");
  return at == std::string::npos ? '?' : action[at];
}

/// A device's actions as a bar: each column has the letter of the action that covers most of it, '.' where it
/// is idle.
std::string bar_of(const json& actions, double begin, double span, std::size_t columns) {
  std::string bar(columns, '.');
  std::vector<double> covered(columns, 0.5);
  auto scale = static_cast<double>(columns) / span;
  for (const auto& one : actions) {
    auto from = (number_in(one, "begin") - begin) * scale, to = (number_in(one, "end") - begin) * scale;
    if (!(to > from) || from < 0 || to > static_cast<double>(columns) + 1) continue;
    for (auto at = static_cast<std::size_t>(from); at < columns && static_cast<double>(at) < to; ++at) {
      auto share = std::min(to, static_cast<double>(at) + 1) - std::max(from, static_cast<double>(at));
      if (share < covered[at]) continue;
      covered[at] = share;
      bar[at] = letter_of(text_in(one, "action", "?"));
    }
  }
  return bar;
}

std::string duration_text(double duration, const std::string& unit) {
  if (unit == "s") return time_text(duration);
  return count_text(duration) + " " + unit;
}

const json* timeline_in(const job_snapshot& job, const char* part, const char* name) {
  const auto& whole = job.part(part);
  auto found = whole.find(name);
  return found == whole.end() || !found->is_object() ? nullptr : &*found;
}

}  // namespace

/// The measured step if there is one, else the plan as simulated.
drawn_list draw_timeline(const job_snapshot& job, std::size_t columns) {
  drawn_list drawn;
  const auto* measured = timeline_in(job, "timeline", "measured");
  const auto* timeline = measured ? measured : timeline_in(job, "plan", "simulated");
  if (!timeline) {
    drawn.headings = {{fitted("no call that trains has begun yet", columns), row_style::faint}};
    return drawn;
  }
  auto unit = text_in(*timeline, "unit");
  auto span = number_in(*timeline, "makespan");
  auto what = measured ? "step " + count_text(number_in(job.part("timeline"), "step")) + " as measured"
                       : std::string("a step of the plan as simulated, all stages alike");
  drawn.headings = {{fitted(what + ": " + duration_text(span, unit), columns), row_style::heading},
                    {fitted("F forward  B backward  I W its halves  R G reduce  A apply  . idle", columns),
                     row_style::faint}};
  auto devices = timeline->find("devices");
  if (devices == timeline->end() || !devices->is_array() || !(span > 0)) return drawn;
  double begin = 0;
  bool is_first = true;
  for (const auto& actions : *devices)
    for (const auto& one : actions) {
      auto at = number_in(one, "begin");
      begin = is_first ? at : std::min(begin, at);
      is_first = false;
    }
  constexpr std::size_t name_columns = 11, idle_columns = 9;
  auto width = columns > name_columns + idle_columns + 8 ? columns - name_columns - idle_columns : 8;
  auto idle = timeline->find("idle");
  std::size_t number = 0;
  for (const auto& actions : *devices) {
    std::string idle_text;
    if (idle != timeline->end() && idle->is_array() && number < idle->size() && (*idle)[number].is_number())
      idle_text = std::to_string(std::lround(100 * (*idle)[number].get<double>() / span)) + "% idle";
    drawn.rows.push_back({fitted(left("device " + std::to_string(number), name_columns) +
                                     bar_of(actions, begin, span, width) + right(idle_text, idle_columns),
                                 columns)});
    std::vector<std::string> lines;
    for (const auto& one : actions)
      lines.push_back(left(text_in(one, "action"), 8) + " from " +
                      duration_text(number_in(one, "begin") - begin, unit) + " to " +
                      duration_text(number_in(one, "end") - begin, unit));
    drawn.details.push_back(std::move(lines));
    ++number;
  }
  return drawn;
}

}  // namespace troupe
