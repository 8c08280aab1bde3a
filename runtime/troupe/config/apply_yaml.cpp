#include "troupe/config/job_fields.hpp"
#include "troupe/config/yaml_settings.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

std::string known_keys() {
  std::string names;
  for (const auto& field : job_fields()) names += (names.empty() ? "" : ", ") + std::string(field.name);
  return names;
}

void apply_setting(const std::filesystem::path& file, const yaml_setting& setting, job_options& options) {
  const auto* field = find_job_field(setting.key);
  if (!field)
    refuse_at_line(file, setting.key_line,
                   "unknown key '" + setting.key + "'; did you mean '" +
                       std::string(nearest_job_field(setting.key).name) + "'? Known keys: " + known_keys());
  try {
    field->set(setting.value, options);
  } catch (const bad_input& problem) {
    refuse_at_line(file, setting.value_line, "key '" + setting.key + "': " + problem.what());
  }
}

}  // namespace

void apply_yaml(const std::filesystem::path& file, job_options& options) {
  auto changed = options;
  for (const auto& setting : read_yaml_settings(file, "configuration file"))
    apply_setting(file, setting, changed);
  options = changed;
}

}  // namespace troupe
