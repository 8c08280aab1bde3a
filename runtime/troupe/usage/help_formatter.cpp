#include "troupe/usage/help_formatter.hpp"

#include <set>
#include <string_view>

namespace troupe::usage {
namespace {

/// "N" of "INT:INT in [1 - 8]"
std::string value_name(std::string_view type) {
  auto first = type.substr(0, type.find_first_of(":( "));
  if (first == "INT" || first == "UINT") return "N";
  if (first == "FLOAT") return "X";
  return std::string(first);
}

/// "20,60" of "[20,60]", nothing of "[]" and, as CLI11 2.4 has it, "{}"; a newline as \n.
std::string default_text(std::string value) {
  if (value == "{}") return {};
  if (value.starts_with('[') && value.ends_with(']')) value = value.substr(1, value.size() - 2);
  std::string text;
  for (char letter : value) text += letter == '\n' ? "\\n" : std::string(1, letter);
  return text;
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::string text;
  for (const auto* each : options) text += (text.empty() ? "" : ", ") + each->get_name();
  return text;
}

}  // namespace

std::string help_formatter::make_option_opts(const CLI::Option* option) const {
  std::string text;
  if (option->get_type_size() != 0) {
    if (!option->get_type_name().empty()) text += " " + value_name(option->get_type_name());
    if (auto shown = default_text(option->get_default_str()); !shown.empty()) text += "=" + shown;
    if (option->get_expected_max() == CLI::detail::expected_max_vector_size)
      text += " ...";
    else if (option->get_expected_min() > 1)
      text += " x " + std::to_string(option->get_expected());
    if (option->get_required()) text += " (required)";
  }
  if (!option->get_needs().empty()) text += " (needs " + names_of(option->get_needs()) + ")";
  if (!option->get_excludes().empty()) text += " (not with " + names_of(option->get_excludes()) + ")";
  return text;
}

}  // namespace troupe::usage
