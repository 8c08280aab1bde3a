#pragma once
#include <string>

#include "troupe/schedule/simulate.hpp"

namespace troupe {

/// One line a device, `columns` wide, for a terminal. `color` uses ANSI colours (off for files and pipes).
struct text_drawing {
  int columns = 100;
  bool color = false;
};
std::string draw_text(const timeline& drawn, const text_drawing& how);

/// A standalone SVG picture: forwards, backwards and idle time per device, with microbatch numbers and a legend.
std::string draw_svg(const timeline& drawn, const std::string& title);

}  // namespace troupe
