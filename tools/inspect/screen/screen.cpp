#include "inspect/screen/screen.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

namespace troupe {
namespace {

std::string number_text(const char* form, double number) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), form, number);
  return text.data();
}

/// Three digits, and the letter of the power of 1000.
std::string scaled_text(double number) {
  constexpr std::array letters = {"", "k", "M", "G", "T", "P"};
  std::size_t power = 0;
  while (number >= 999.5 && power + 1 < letters.size()) {
    number /= 1000;
    ++power;
  }
  bool is_whole = power == 0 && number == std::floor(number);
  return number_text(is_whole || number >= 99.95 ? "%.0f" : "%.1f", number) + letters.at(power);
}

}  // namespace

std::string printable(const std::string& text) {
  auto shown = text;
  std::ranges::replace_if(
      shown, [](char one) { return one < ' ' || one > '~'; }, '?');
  return shown;
}

std::string fitted(const std::string& text, std::size_t columns) {
  auto shown = printable(text);
  if (shown.size() <= columns) return shown;
  shown.resize(columns);
  for (std::size_t i = 0; i < std::min<std::size_t>(3, columns); ++i) shown[columns - 1 - i] = '.';
  return shown;
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns) {
  constexpr std::size_t indent = 2, least_columns = 8;
  auto rest = printable(text);
  if (columns < least_columns) return {fitted(rest, columns)};
  std::vector<std::string> lines;
  while (rest.size() > columns) {
    auto end = rest.rfind(' ', columns);
    if (end == std::string::npos || end <= indent) end = columns;
    lines.push_back(rest.substr(0, end));
    auto next = rest.find_first_not_of(' ', end);
    rest = next == std::string::npos ? "" : std::string(indent, ' ') + rest.substr(next);
  }
  if (!rest.empty() || lines.empty()) lines.push_back(rest);
  return lines;
}

std::string left(const std::string& text, std::size_t columns) {
  auto shown = fitted(text, columns);
  shown.resize(columns, ' ');
  return shown;
}

std::string right(const std::string& text, std::size_t columns) {
  auto shown = fitted(text, columns);
  return std::string(columns - shown.size(), ' ') + shown;
}

std::string count_text(double count) { return scaled_text(std::max(0.0, count)); }

std::string rate_text(double bytes_per_s) {
  auto scaled = scaled_text(std::max(0.0, bytes_per_s));
  bool has_letter = scaled.back() > '9';
  auto letter = has_letter ? std::string(1, scaled.back()) : std::string();
  if (has_letter) scaled.pop_back();
  return scaled + " " + letter + "B/s";
}

std::string time_text(double seconds) {
  if (seconds < 0.0995) return number_text("%.1f ms", std::max(0.0, seconds) * 1000);
  if (seconds < 99.95) return number_text("%.1f s", seconds);
  if (seconds < 3600) return number_text("%.0f min", seconds / 60);
  return number_text("%.1f h", seconds / 3600);
}

}  // namespace troupe
