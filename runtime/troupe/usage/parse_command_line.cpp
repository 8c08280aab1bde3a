#include "troupe/usage/parse_command_line.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/usage/usage_problem.hpp"

namespace troupe::usage {
namespace {

/// "--steps" of "--steps=3", and of "--steps"
std::string name_in(std::string_view word) { return std::string(word.substr(0, word.find('='))); }

/// Null: the word is no option of the command.
const CLI::Option* option_named(const CLI::App& command, std::string_view word) {
  return word.starts_with('-') ? command.get_option_no_throw(name_in(word)) : nullptr;
}

bool is_option_of_program(const CLI::App& command, std::string_view word) {
  if (option_named(command, word)) return true;
  const auto* parent = command.get_parent();
  return parent && is_option_of_program(*parent, word);
}

/// Null: the word is no subcommand.
const CLI::App* subcommand_named(const CLI::App& command, const std::string& word) {
  auto found = command.get_subcommands([&](const CLI::App* one) { return one->check_name(word); });
  return found.empty() ? nullptr : found.front();
}

bool is_whole_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

/// What a text of digits should have been that `Number` does not hold.
template <class Number>
std::string expected_instead(std::string_view value) {
  using limits = std::numeric_limits<Number>;
  if (!value.starts_with('-')) return "of at most " + std::to_string(limits::max());
  return limits::is_signed ? "of at least " + std::to_string(limits::min()) : "from 0 on";
}

template <class Number>
void check_limits(const CLI::App& command, const CLI::Option& option, std::string_view value) {
  Number number = 0;
  auto digits = value.substr(value.starts_with('+') ? 1 : 0);
  auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status != std::errc())
    throw bad_input(option.get_name() + ": expected a whole number " + expected_instead<Number>(value) +
                    ", got '" + std::string(value) + "'." + see_help(command));
}

/// Of a number with too many digits CLI11 takes the limit, and it wraps a negative one around.
void check_number(const CLI::App& command, const CLI::Option& option, std::string_view value) {
  auto type = option.get_type_name();
  if (!is_whole_number(value)) return;
  if (type.starts_with("UINT")) check_limits<std::uint64_t>(command, option, value);
  if (type.starts_with("INT")) check_limits<std::int64_t>(command, option, value);
}

/// Checks the option in front of `words` with what follows. Returns how many words belong to it.
std::size_t check_option(const CLI::App& command, const CLI::Option& option,
                         std::span<const std::string> words) {
  const auto& word = words.front();
  if (auto equals = word.find('='); equals != word.npos) {
    if (equals + 1 == word.size())
      throw bad_input(name_in(word) + " needs a value after the '=', got none: give one, or leave '" + word +
                      "' out." + see_help(command));
    check_number(command, option, std::string_view(word).substr(equals + 1));
    return 1;
  }
  // An option without a value, or one that may have none, leaves the next option alone. CLI11 says so if no
  // word follows.
  if (option.get_items_expected_min() == 0 || words.size() == 1) return 1;
  const auto& value = words[1];
  if (value == "--" || is_option_of_program(command, value))
    throw bad_input(word + " needs a value, got " + (value == "--" ? "" : "the option ") + value + ". " +
                    word + "=" + value + " gives it this value." + see_help(command));
  check_number(command, option, value);
  return 2;
}

void check_words(const CLI::App& app, std::span<const std::string> words) {
  const auto* command = &app;
  while (!words.empty() && words.front() != "--") {
    std::size_t num_checked = 1;
    if (const auto* option = option_named(*command, words.front()))
      num_checked = check_option(*command, *option, words);
    else if (const auto* inner = subcommand_named(*command, words.front()))
      command = inner;
    else if (command->get_prefix_command())
      return;  // the words of another program
    words = words.subspan(num_checked);
  }
}

}  // namespace

void parse_command_line(CLI::App& app, int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  check_words(app, words);
  app.parse(argc, argv);
}

}  // namespace troupe::usage
