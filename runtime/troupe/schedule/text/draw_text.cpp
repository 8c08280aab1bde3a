#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "troupe/error/errors.hpp"
#include "troupe/schedule/text/action_label.hpp"
#include "troupe/schedule/text/draw.hpp"

namespace troupe::schedule {
namespace {

constexpr int least_columns = 32;
constexpr int most_columns = 4096;

/// How one kind of action looks. With colours the fill is blank, and neighbours differ in shade.
struct mark {
  std::string_view name;
  std::string_view fill;
  std::array<int, 2> shades;  ///< backgrounds, of the 256 colours
};

constexpr std::array<mark, num_action_kinds> marks = {{{"forward", "░", {117, 153}},
                                                       {"backward", "█", {215, 222}},
                                                       {"input gradient", "▓", {215, 222}},
                                                       {"weight gradient", "▒", {151, 194}},
                                                       {"reduction", "▚", {183, 189}},
                                                       {"optimizer step", "▄", {210, 217}},
                                                       {"all-reduce", "▞", {180, 187}},
                                                       {"unshard", "▖", {153, 159}},
                                                       {"reshard", "▗", {153, 159}}}};

std::string repeat(std::string_view text, int count) {
  std::string repeated;
  for (int i = 0; i < count; ++i) repeated += text;
  return repeated;
}

std::string painted(const std::string& text, int background) {
  return std::string("\033[38;5;16;48;5;").append(std::to_string(background)).append("m") + text + "\033[0m";
}

/// Draws one timeline; methods return lines or pieces of lines.
class text_picture {
 public:
  text_picture(const timeline& drawn, const text_drawing& how)
      : drawn_(drawn),
        how_(how),
        digits_(std::to_string(drawn.devices.size()).size()),
        margin_(8 + digits_),
        cells_(how.columns - static_cast<int>(margin_)) {}

  std::string draw() const {
    std::string text;
    for (std::size_t device = 0; device < drawn_.devices.size(); ++device) {
      auto name = std::to_string(device);
      text.append("device ").append(digits_ - name.size(), ' ').append(name).append(" ");
      text.append(row(drawn_.devices[device])).append("\n");
    }
    std::string indent(margin_, ' ');
    text += indent + axis() + "\n";
    if (how_.legend) text += indent + legend() + "\n";
    return text;
  }

 private:
  /// Begins and ends are rounded to whole cells, so that neighbours stay neighbours.
  std::string row(const std::vector<timed_action>& device) const {
    if (!(drawn_.makespan > 0)) return idle(cells_);
    double scale = cells_ / drawn_.makespan;
    bool with_stage = several_stages(device);
    std::string line;
    int at = 0;
    for (const auto& done : device) {
      auto begin = static_cast<int>(std::lround(done.begin * scale));
      auto end = static_cast<int>(std::lround(done.end * scale));
      if (begin == end) continue;
      line += idle(begin - at) + box(done, end - begin, scale, with_stage);
      at = end;
    }
    return line + idle(cells_ - at);
  }

  /// The label goes first; without colours one cell of fill must follow it, which tells the kind. Whole
  /// actions ask for room before rounding, so that boxes of the same length have labels of the same form.
  std::string box(const timed_action& done, int width, double scale, bool with_stage) const {
    const auto& look = marks[static_cast<std::size_t>(done.op.kind)];
    int room = how_.color ? width : width - 1;
    int even_room = std::min(room, static_cast<int>((done.end - done.begin) * scale) - (how_.color ? 0 : 1));
    auto label =
        fitting_label(done.op, {.whole = static_cast<std::size_t>(with_stage ? std::max(even_room, 0) : 0),
                                .number = static_cast<std::size_t>(room)});
    auto rest = width - static_cast<int>(label.size());
    if (!how_.color) return label + repeat(look.fill, rest);
    return painted(label + repeat(" ", rest), look.shades[is_odd(done.op, with_stage)]);
  }

  std::string idle(int width) const {
    if (width == 0 || !how_.color) return repeat("·", width);
    return std::string("\033[2m").append(repeat("·", width)).append("\033[0m");
  }

  /// "0" under the first cell, the makespan right-aligned under the last one.
  std::string axis() const {
    char number[32];
    std::snprintf(number, sizeof number, "%.4g", drawn_.makespan);
    std::string end = number;
    if (!how_.unit.empty()) end.append(" ").append(how_.unit);
    return std::string("0").append(repeat(" ", cells_ - 1 - static_cast<int>(end.size()))).append(end);
  }

  std::string legend() const {
    std::array<bool, marks.size()> seen = {};
    for (const auto& device : drawn_.devices)
      for (const auto& done : device)
        if (done.end > done.begin) seen[static_cast<std::size_t>(done.op.kind)] = true;
    std::string line;
    for (std::size_t kind = 0; kind < marks.size(); ++kind) {
      if (!seen[kind]) continue;
      line += how_.color ? painted("  ", marks[kind].shades[0]) : repeat(marks[kind].fill, 2);
      line.append(" ").append(marks[kind].name).append("   ");
    }
    return line + idle(2) + " idle";
  }

  const timeline& drawn_;
  const text_drawing& how_;
  std::size_t digits_;
  std::size_t margin_;
  int cells_;
};

}  // namespace

std::string draw_text(const timeline& drawn, const text_drawing& how) {
  if (how.columns < least_columns || how.columns > most_columns)
    throw bad_input("a drawing cannot be " + std::to_string(how.columns) + " columns wide. Give " +
                    std::to_string(least_columns) + " to " + std::to_string(most_columns));
  return text_picture(drawn, how).draw();
}

}  // namespace troupe::schedule
