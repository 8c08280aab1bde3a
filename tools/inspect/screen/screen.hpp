#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe {

/// How a row is shown on a terminal.
enum class row_style : std::uint8_t { plain, heading, selected, bad, faint };

/// A row of a screen: printable ASCII, so that nothing that a job tells can steer the terminal.
struct screen_row {
  std::string text;
  row_style style = row_style::plain;
};
using screen = std::vector<screen_row>;

struct screen_size {
  std::size_t rows = 24, columns = 80;
};

/// Every byte that is not printable ASCII as '?'.
std::string printable(const std::string& text);
/// Printable, and cut to so many columns; "..." at the end says that it was cut.
std::string fitted(const std::string& text, std::size_t columns);
/// Printable, in lines of so many columns, those after the first moved to the right by two.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);
/// Fitted, and filled up with spaces on the right, or on the left.
std::string left(const std::string& text, std::size_t columns);
std::string right(const std::string& text, std::size_t columns);

// Short texts: "1.5k", "3.2 MB/s", "12.3 s", "4 min".
std::string count_text(double count);
std::string rate_text(double bytes_per_s);
std::string time_text(double seconds);

}  // namespace troupe
