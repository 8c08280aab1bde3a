#include "troupe/usage/usage_problem.hpp"

#include <algorithm>
#include <cstdlib>

#include "troupe/usage/nearest.hpp"

namespace troupe::usage {
namespace {

/// The command that the line got to: `troupe bench compute`.
const CLI::App& innermost(const CLI::App& app) {
  auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.front());
}

std::vector<std::string> names_of_options(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> names_of_commands(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* sub :
       command.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    names.push_back(sub->get_name());
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string full_name(const CLI::App& command) {
  const auto* parent = command.get_parent();
  return parent ? full_name(*parent) + " " + command.get_name() : command.get_name();
}

std::string suggestion(const std::string& meant) {
  return meant.empty() ? std::string() : "; did you mean '" + meant + "'?";
}

/// Whether CLI11 could not take an option's value: it says so before it looks at words that it does not know.
bool is_about_value(const CLI::ParseError& problem) {
  auto code = problem.get_exit_code();
  return code == static_cast<int>(CLI::ExitCodes::ConversionError) ||
         code == static_cast<int>(CLI::ExitCodes::ValidationError);
}

/// The option in "--steps: Value 0 not in range .." or in "Could not convert: --steps = x".
const CLI::Option* option_in(const CLI::App& command, std::string_view text) {
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion)) text.remove_prefix(conversion.size());
  return command.get_option_no_throw(std::string(text.substr(0, text.find_first_of(": "))));
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

/// "0.000000 to 17976931.." or "[0 - 1.79769e+308]", as CLI11 before 2.4 and since then writes a range, in
/// words.
std::string range_in_words(std::string range) {
  auto without_zeros = [](const std::string& number) {
    auto point = number.find('.');
    if (point == number.npos) return number;
    return number.substr(0, std::max(point, number.find_last_not_of("0.") + 1));
  };
  constexpr std::size_t most_digits = 20;  // more are those of a type's limit
  std::string_view between = " to ";
  if (range.starts_with('[') && range.ends_with(']')) {
    range = range.substr(1, range.size() - 2);
    between = " - ";
  }
  auto to = range.find(between);
  auto lowest = without_zeros(range.substr(0, to));
  if (to == range.npos) return "from " + lowest;
  auto highest = without_zeros(range.substr(to + between.size()));
  bool is_unlimited = highest.size() > most_digits || highest.ends_with("e+308");
  return "from " + lowest + (is_unlimited ? " on" : " to " + highest);
}

/// A whole number that the option's type does not hold.
std::string nearer_number(const std::string& type, const std::string& value) {
  if (!value.starts_with('-')) return "a smaller whole number";
  return type.starts_with("UINT") ? "a whole number from 0 on" : "a greater whole number";
}

/// What an option takes; empty: CLI11's words are better.
std::string expected_by(const CLI::Option& option, const std::string& value, const std::string& problem) {
  if (option.get_items_expected_max() == 0) return "true or false";
  auto type = option.get_type_name();
  bool is_whole = type.starts_with("INT") || type.starts_with("UINT");
  std::string number = is_whole ? "a whole number" : "a number";
  constexpr std::string_view in_range = "not in range ";
  auto range = problem.find(in_range);
  if (range != problem.npos && is_number(value))
    return number + " " + range_in_words(problem.substr(range + in_range.size()));
  if (is_whole && !value.empty() && value.find_first_not_of("0123456789", value.front() == '-') == value.npos)
    return nearer_number(type, value);
  return is_whole || type.starts_with("FLOAT") ? number : std::string();
}

std::string value_problem(const CLI::App& command, const std::string& problem) {
  const auto* option = option_in(command, problem);
  if (!option || option->results().empty() || problem.find(": expected ") != problem.npos) return problem;
  const auto& value = option->results().back();
  auto expected = expected_by(*option, value, problem);
  return expected.empty() ? problem : option->get_name() + ": expected " + expected + ", got '" + value + "'";
}

/// Of "--name: At Most 1 required but received 2" and "--name: 1 required INT missing".
std::string number_of_values_problem(const std::string& problem) {
  auto name = problem.substr(0, problem.find(':'));
  auto says = [&](const char* words) { return problem.find(words) != problem.npos; };
  if (says(": At Most 1 required")) return name + " is given more than once: give it once";
  if (says(": 1 required") && says("missing")) return name + " needs a value after it, got none";
  return problem;
}

}  // namespace

std::string see_help(const CLI::App& command) {
  auto name = full_name(command);
  return " See `" + (name.empty() ? "PROGRAM" : name) + " --help`";
}

std::string did_you_mean(const CLI::App& command, const std::string& word) {
  return suggestion(meant_by(word.substr(0, word.find('=')), names_of_options(command)));
}

std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem) {
  const auto& command = innermost(app);
  auto help = see_help(command);
  if (is_about_value(problem)) return value_problem(command, problem.what()) + "." + help;
  if (problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch))
    return number_of_values_problem(problem.what()) + "." + help;
  auto unknown = app.remaining(true);
  auto commands = names_of_commands(command);
  auto is_missing = problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError);
  if (unknown.empty() && is_missing && !commands.empty())
    return "expected a command, got none. Commands: " + joined(commands) + "." + help;
  if (unknown.empty()) return std::string(problem.what()) + "." + help;
  const auto& word = unknown.front();
  if (word.starts_with("-")) {
    auto guess = did_you_mean(command, word);
    return "there is no option '" + word + "'" + (guess.empty() ? "." : guess) + help;
  }
  if (commands.empty()) return "the argument '" + word + "' was not expected." + help;
  auto guess = suggestion(meant_by(word, commands));
  return "there is no command '" + word + "'" + (guess.empty() ? "." : guess) +
         " Commands: " + joined(commands) + "." + help;
}

}  // namespace troupe::usage
