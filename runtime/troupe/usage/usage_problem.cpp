#include "troupe/usage/usage_problem.hpp"

#include "troupe/usage/nearest.hpp"

namespace troupe {
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

}  // namespace

std::string did_you_mean(const CLI::App& command, const std::string& word) {
  return suggestion(meant_by(word.substr(0, word.find('=')), names_of_options(command)));
}

std::string usage_problem(const CLI::App& app, const CLI::ParseError& problem) {
  const auto& command = innermost(app);
  auto name = full_name(command);
  auto help = " See `" + (name.empty() ? "PROGRAM" : name) + " --help`";
  auto unknown = app.remaining(true);
  if (unknown.empty()) return std::string(problem.what()) + "." + help;
  const auto& word = unknown.front();
  auto commands = names_of_commands(command);
  if (word.starts_with("-")) {
    auto guess = did_you_mean(command, word);
    return "there is no option '" + word + "'" + (guess.empty() ? "." : guess) + help;
  }
  if (commands.empty()) return "the argument '" + word + "' was not expected." + help;
  auto guess = suggestion(meant_by(word, commands));
  return "there is no command '" + word + "'" + (guess.empty() ? "." : guess) +
         " Commands: " + joined(commands) + "." + help;
}

}  // namespace troupe
