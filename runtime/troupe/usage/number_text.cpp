#include "troupe/usage/number_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::usage {
namespace {

constexpr std::string_view letters = "KMGTP";
constexpr int bits_per_unit = 10;

/// The number of bits by which the unit shifts; -1: there is no such unit.
int shift_of(std::string_view unit) {
  std::string given;
  for (unsigned char letter : unit) given += static_cast<char>(std::toupper(letter));
  if (given.empty() || given == "B") return 0;
  auto found = letters.find(given.front());
  auto rest = given.substr(1);
  if (found == letters.npos || (!rest.empty() && rest != "B" && rest != "I" && rest != "IB")) return -1;
  return bits_per_unit * (static_cast<int>(found) + 1);
}

/// "8T"
std::string in_largest_unit(std::uint64_t bytes) {
  std::size_t unit = 0;
  for (; unit < letters.size() && bytes != 0 && bytes % 1024 == 0; ++unit) bytes /= 1024;
  return std::to_string(bytes) + (unit == 0 ? "" : std::string(1, letters[unit - 1]));
}

}  // namespace

std::uint64_t bytes_from(std::string_view text, std::uint64_t most) {
  constexpr auto example = ", such as 64M or 2G, got ";
  std::uint64_t number = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  auto unit = text.substr(static_cast<std::size_t>(end - text.data()));
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  auto shift = shift_of(unit);
  auto is_word = !unit.empty() && std::isalpha(static_cast<unsigned char>(unit.front()));
  if (status == std::errc() && shift < 0 && is_word)
    throw bad_input(std::string("expected a number of bytes") + example + "the unit '" + std::string(unit) +
                    "'");
  if (status != std::errc() || shift < 0 || number > most >> shift)
    throw bad_input("expected a whole number of bytes from 0 to " + in_largest_unit(most) + example + "'" +
                    std::string(text) + "'");
  return number << shift;
}

double number_from(std::string_view text) {
  double number = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(number))
    throw bad_input("expected a number such as 2 or 0.5, got '" + std::string(text) + "'");
  return number;
}

std::string bytes_text(double bytes) {
  constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4g %s", bytes, units[unit]);
  return text.data();
}

std::string counted(std::int64_t number, const char* one, const char* many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

std::string without_separators(std::string_view text) {
  auto is_digit = [text](std::size_t index) {
    return index < text.size() && text[index] >= '0' && text[index] <= '9';
  };
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '_' || i == 0 || !is_digit(i - 1) || !is_digit(i + 1)) result += text[i];
  return result;
}

}  // namespace troupe::usage
