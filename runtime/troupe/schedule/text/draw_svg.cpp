#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "troupe/schedule/simulation/measured.hpp"
#include "troupe/schedule/text/action_label.hpp"
#include "troupe/schedule/text/draw.hpp"

namespace troupe::schedule {
namespace {

// All lengths are in the picture's units; viewers scale it to any size.
constexpr double width = 1200;
constexpr double left = 104;
constexpr double right = 116;
constexpr double top = 84;
constexpr double row_height = 38;
constexpr double row_gap = 10;
constexpr double bottom = 50;

/// Print inside boxes: its height and the width of a digit.
struct print {
  std::string_view css;
  double size;
  double character;
};
constexpr print large = {"box", 14, 8.8};
constexpr print small = {"small", 10, 6.1};

struct look {
  std::string_view name;
  std::string_view css;
};
constexpr std::array<look, num_action_kinds> looks = {{{"forward", "f"},
                                                       {"backward", "b"},
                                                       {"input gradient", "i"},
                                                       {"weight gradient", "w"},
                                                       {"reduction", "r"},
                                                       {"optimizer step", "a"},
                                                       {"all-reduce", "r"},
                                                       {"unshard", "a"},
                                                       {"reshard", "a"}}};
std::string_view css_of(action_kind kind) { return looks[static_cast<std::size_t>(kind)].css; }

constexpr std::string_view style = R"svg(<style>
text { font-family: Inter, "Segoe UI", "Helvetica Neue", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1f2a37; }
.title { font-size: 21px; font-weight: 600; }
.note { font-size: 13px; fill: #64748b; }
.name { font-size: 14px; font-weight: 500; }
.box { font-size: 14px; text-anchor: middle; }
.small { font-size: 10px; text-anchor: middle; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.f { fill: #a5cdf7; } .f.odd { fill: #c3def9; } .f.text { fill: #123a63; }
.b { fill: #f8c183; } .b.odd { fill: #fbd5a8; } .b.text { fill: #5f3705; }
.i { fill: #f8c183; } .i.odd { fill: #fbd5a8; } .i.text { fill: #5f3705; }
.w { fill: #b3dfb0; } .w.odd { fill: #cdeaca; } .w.text { fill: #1e4d1b; }
.r { fill: #cbb8ee; } .r.odd { fill: #ddd0f5; } .r.text { fill: #3b2470; }
.a { fill: #f2a9a9; } .a.odd { fill: #f7c9c9; } .a.text { fill: #641c1c; }
</style>
<defs><pattern id="idle" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="8" height="8" fill="#f4f6f9"/><rect width="1.6" height="8" fill="#d5dce5"/></pattern></defs>
)svg";

/// A decimal point whatever the locale.
std::string written(double value, std::chars_format format, int precision) {
  char text[400];
  auto end = std::to_chars(text, text + sizeof text, value, format, precision).ptr;
  return std::string(text, end);
}
std::string length(double value) { return written(value, std::chars_format::fixed, 2); }
std::string short_number(double value) { return written(value, std::chars_format::general, 4); }

std::string escaped(const std::string& text) {
  std::string safe;
  for (char c : text) {
    if (c == '&')
      safe += "&amp;";
    else if (c == '<')
      safe += "&lt;";
    else if (c == '>')
      safe += "&gt;";
    else
      safe += c;
  }
  return safe;
}

std::string text_at(double x, double y, std::string_view css, const std::string& text) {
  return "<text x=\"" + length(x) + "\" y=\"" + length(y) + "\" class=\"" + std::string(css) + "\">" +
         escaped(text) + "</text>\n";
}

std::string rect(double x, double y, double w, double h, const std::string& attributes) {
  return "<rect x=\"" + length(x) + "\" y=\"" + length(y) + "\" width=\"" + length(w) + "\" height=\"" +
         length(h) + "\" " + attributes + "/>\n";
}

std::string percent(double fraction) { return written(100 * fraction, std::chars_format::fixed, 1) + " %"; }

/// Draws one timeline; methods return pieces of SVG.
class svg_picture {
 public:
  svg_picture(const timeline& drawn, std::string unit, const std::vector<std::string>& notes)
      : drawn_(drawn),
        unit_(std::move(unit)),
        notes_(notes),
        scale_(drawn.makespan > 0 ? (width - left - right) / drawn.makespan : 0),
        axis_y_(top + static_cast<double>(drawn.devices.size()) * (row_height + row_gap)) {}

  std::string draw(const std::string& title) const {
    auto height = length(axis_y_ + bottom);
    auto size = length(width);
    std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + " " + height +
                      "\" width=\"" + size + "\" height=\"" + height + "\">\n" + std::string(style);
    svg += rect(0.5, 0.5, width - 1, axis_y_ + bottom - 1, "rx=\"10\" fill=\"#ffffff\" stroke=\"#e2e8f0\"");
    svg += heading(title) + grid();
    for (std::size_t device = 0; device < drawn_.devices.size(); ++device) svg += row(device);
    return svg + "</svg>\n";
  }

 private:
  std::string with_unit(double time) const {
    auto text = short_number(time);
    if (!unit_.empty()) text.append(" ").append(unit_);
    return text;
  }

  std::string heading(const std::string& title) const {
    auto bubble = percent(summarize(drawn_).bubble_fraction);
    auto summary = "makespan " + with_unit(drawn_.makespan) + ", bubble " + bubble;
    return text_at(24, 36, "title", title) + text_at(24, 60, "note", summary) + legend();
  }

  /// Ends at the right edge. Texts are as wide as their font makes them, so each gets a generous estimate.
  std::string legend() const {
    std::array<bool, looks.size()> seen = {};
    for (const auto& device : drawn_.devices)
      for (const auto& done : device)
        if (done.end > done.begin) seen[static_cast<std::size_t>(done.op.kind)] = true;
    double x = width - 24;
    std::string svg = legend_entry(x, "idle", "fill=\"url(#idle)\" stroke=\"#d5dce5\"");
    for (std::size_t kind = looks.size(); kind-- > 0;)
      if (seen[kind])
        svg += legend_entry(x, looks[kind].name, "class=\"" + std::string(looks[kind].css) + "\"");
    return svg;
  }

  /// Draws an entry that ends at x, and moves x to the end of the next one.
  static std::string legend_entry(double& x, std::string_view name, const std::string& attributes) {
    x -= 27 + 7.4 * static_cast<double>(name.size());
    auto svg = rect(x, 24, 20, 14, "rx=\"3\" " + attributes) + text_at(x + 27, 36, "note", std::string(name));
    x -= 20;
    return svg;
  }

  /// Ticks at multiples of 1, 2 or 5 times a power of ten, eight to twenty of them.
  double tick() const {
    double step = std::pow(10, std::floor(std::log10(drawn_.makespan / 8)));
    for (double factor : {5.0, 2.0})
      if (drawn_.makespan / (step * factor) >= 8) return step * factor;
    return step;
  }

  std::string grid() const {
    std::string svg;
    if (scale_ == 0) return svg;
    for (int i = 0; i * tick() <= drawn_.makespan * (1 + 1e-9); ++i) {
      double x = left + i * tick() * scale_;
      svg += "<line x1=\"" + length(x) + "\" y1=\"" + length(top - 6) + "\" x2=\"" + length(x) + "\" y2=\"" +
             length(axis_y_) + "\" stroke=\"#e2e8f0\"/>\n";
      svg += text_at(x, axis_y_ + 18, "note middle", short_number(i * tick()));
    }
    auto label = unit_.empty() ? "time" : "time in " + unit_;
    return svg + text_at(left + (width - left - right) / 2, axis_y_ + 38, "note middle", label);
  }

  std::string row(std::size_t device) const {
    double y = top + static_cast<double>(device) * (row_height + row_gap);
    const auto& actions = drawn_.devices[device];
    auto svg = text_at(left - 14, y + row_height / 2 + 5, "name end", "device " + std::to_string(device));
    svg += rect(left, y, width - left - right, row_height, "rx=\"4\" fill=\"url(#idle)\" stroke=\"#d5dce5\"");
    bool with_stage = several_stages(actions);
    for (const auto& done : actions)
      if (done.end > done.begin) svg += box(done, y, with_stage);
    bool has_note = device < notes_.size();
    if (drawn_.makespan > 0)
      svg += text_at(width - 24, y + row_height / 2 + (has_note ? -4 : 5), "note end",
                     percent(drawn_.idle[device] / drawn_.makespan) + " idle");
    if (has_note) svg += text_at(width - 24, y + row_height / 2 + 14, "note end", notes_[device]);
    return svg;
  }

  /// The box's tooltip says the action and its times. The outline of a narrow box must not hide it.
  std::string box(const timed_action& done, double y, bool with_stage) const {
    double x = left + done.begin * scale_;
    double w = (done.end - done.begin) * scale_;
    auto css = std::string(css_of(done.op.kind));
    auto shade = is_odd(done.op, with_stage) ? " odd\"" : "\"";
    auto outline = " rx=\"" + length(std::min(3.0, w / 6)) + "\" stroke=\"#ffffff\" stroke-width=\"" +
                   length(std::min(1.5, w / 8)) + "\"";
    return "<g><title>" + to_string(done.op) + ": " + short_number(done.begin) + " to " +
           short_number(done.end) + "</title>" +
           rect(x, y, w, row_height, "class=\"" + css + shade + outline) +
           label(done.op, x + w / 2, y + row_height / 2, w - 1.5, with_stage) + "</g>\n";
  }

  /// Small print, if only that fits.
  static std::string label(const action& op, double x, double y, double room, bool with_stage) {
    auto characters = [room](double each) { return static_cast<std::size_t>(std::max(0.0, room / each)); };
    auto text = fitting_label(
        op, {.whole = with_stage ? characters(large.character) : 0, .number = characters(small.character)});
    if (text.empty()) return {};
    bool fits = text.size() <= characters(large.character);
    const auto& chosen = fits ? large : small;
    return text_at(x, y + chosen.size * 0.36,
                   std::string(css_of(op.kind)) + " text " + std::string(chosen.css), text);
  }

  const timeline& drawn_;
  std::string unit_;
  const std::vector<std::string>& notes_;
  double scale_;
  double axis_y_;
};

}  // namespace

std::string draw_svg(const timeline& drawn, const std::string& title, const std::string& unit,
                     const std::vector<std::string>& notes) {
  return svg_picture(drawn, unit, notes).draw(title);
}

}  // namespace troupe::schedule
