#include "troupe/config/command_line.hpp"

#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

CLI::Option* add_value(CLI::App& app, const job_field& field, job_options& options) {
  auto store = [&field, &options](const std::string& text) {
    try {
      field.set(text.empty() ? field.implied : std::string_view(text), options);
    } catch (const bad_input& problem) {
      throw bad_input(field.option_name() + ": " + problem.what());
    }
  };
  auto* option = app.add_option_function<std::string>(field.option_name(), store, std::string(field.help))
                     ->take_last()
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

}  // namespace

void add_job_options(CLI::App& app, job_options& options) {
  // CLI11 runs the callbacks of the options in the order in which they were added, not in that of the command
  // line: the file, added first, is applied before any other option.
  app.add_option_function<std::string>(
         "--config", [&options](const std::string& file) { apply_yaml(file, options); },
         "YAML file with any of these options, '_' for '-'; the command line wins over it")
      ->type_name("FILE");
  for (const auto& field : job_fields()) add_field(app, field, options);
}

}  // namespace troupe
