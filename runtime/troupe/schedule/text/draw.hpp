#pragma once
#include <string>
#include <vector>

#include "troupe/schedule/simulation/simulate.hpp"

namespace troupe::schedule {

/// How a timeline appears on a terminal.
struct text_drawing {
  int columns = 100;      ///< width of every line; 32 to 4096
  bool color = false;     ///< ANSI colours (off for files and pipes)
  bool legend = true;     ///< a line that explains the marks
  std::string unit = {};  ///< written after the makespan, for example "ms"
};

/// One line a device, then the time axis and the legend. Planned and measured timelines (see measured.hpp)
/// alike. Kinds differ in their fill also without colour; microbatch numbers stand where they fit, and where
/// a device has several stages, whole actions (1F0). What takes no time is not drawn. Throws bad_input if
/// `columns` is out of range.
std::string draw_text(const timeline& drawn, const text_drawing& how);

/// A standalone SVG picture: title, a row per device, time axis in `unit`, legend. A row has microbatch
/// numbers in boxes (whole actions where a device has several stages), hatched idle time, the share of idle
/// time, and under it the device's note. What takes no time has no box. `notes`: [num_devices], short; empty:
/// none. Needs no other file.
std::string draw_svg(const timeline& drawn, const std::string& title, const std::string& unit = {},
                     const std::vector<std::string>& notes = {});

}  // namespace troupe::schedule
