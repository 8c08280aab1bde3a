#include "troupe/config/command_line.hpp"

#include <algorithm>
#include <filesystem>
#include <variant>

#include "troupe/config/apply_yaml.hpp"
#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/usage/number_text.hpp"

namespace troupe::config {
namespace {

/// On a command line an empty path comes from a variable of the shell that is not set.
void refuse_empty_path(const job_field& field, const std::string& text) {
  if (text.empty() && std::holds_alternative<std::filesystem::path job_options::*>(field.member))
    throw bad_input("expected a path, got ''. Leave the option out for none");
}

CLI::Option* add_value(CLI::App& app, const job_field& field, job_options& options) {
  auto store = [&field, &options](const std::string& text) {
    try {
      refuse_empty_path(field, text);
      field.set(text.empty() ? field.implied : std::string_view(text), options);
    } catch (const bad_input& problem) {
      throw bad_input(field.option_name() + ": " + problem.what());
    }
  };
  auto* option = app.add_option_function<std::string>(field.option_name(), store, std::string(field.help))
                     ->type_name(std::string(field.value_name()))
                     ->default_str(field.text(options));
  return field.implied.empty() ? option : option->expected(0, 1);
}

void add_field(CLI::App& app, const job_field& field, job_options& options) {
  // A switch stands alone or says its value: --json, --json=false.
  if (auto* member = std::get_if<bool job_options::*>(&field.member))
    app.add_flag(field.option_name(), options.*(*member), std::string(field.help))
        ->each([&field, &options](const std::string&) { options.given.emplace(field.name); });
  else
    add_value(app, field, options);
}

/// "--prompt-tokens" of "prompt_tokens"
std::string option_name_of(std::string key) {
  std::ranges::replace(key, '_', '-');
  return "--" + key;
}

/// Options with a value that the program has besides the job's.
std::vector<std::string> own_keys(const CLI::App& app) {
  std::vector<std::string> keys;
  for (const auto* option : app.get_options()) {
    if (option->get_lnames().empty() || option->get_items_expected_max() == 0) continue;
    auto key = option->get_lnames().front();
    std::ranges::replace(key, '-', '_');
    if (key != "config" && !find_job_field(key)) keys.push_back(key);
  }
  return keys;
}

/// The file says also what the program's own options are. CLI11 has the words of the command line by now, and
/// hands an option its value later: what it was given there stays.
void apply_file(const std::string& file, CLI::App& app, job_options& options) {
  auto own = own_keys(app);
  auto take = [&app, &own](const yaml_setting& setting) {
    if (std::ranges::find(own, setting.key) == own.end()) return false;
    auto* option = app.get_option(option_name_of(setting.key));
    auto is_number = [option](const auto*... types) {
      return (option->get_type_name().starts_with(types) || ...);
    };
    auto value = is_number("INT", "UINT", "FLOAT") ? usage::without_separators(setting.value) : setting.value;
    if (option->count() == 0) option->add_result(value);
    return true;
  };
  apply_yaml(file, options, {.names = own, .take = take});
}

}  // namespace

void add_job_options(CLI::App& app, job_options& options) {
  // CLI11 runs the callbacks of the options in the order in which they were added, not in that of the command
  // line: the file, added first, is applied before any other option.
  app.add_option_function<std::string>(
         "--config", [&app, &options](const std::string& file) { apply_file(file, app, options); },
         "YAML file with any of these options, '_' for '-'; the command line wins over it")
      ->type_name("FILE");
  for (const auto& field : job_fields()) add_field(app, field, options);
}

}  // namespace troupe::config
