#include "troupe/config/apply_yaml.hpp"

#include <algorithm>

#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/usage/nearest.hpp"

namespace troupe {
namespace {

std::vector<std::string> known_keys(const other_settings& others) {
  std::vector<std::string> names;
  for (const auto& field : config::job_fields()) names.emplace_back(field.name);
  names.insert(names.end(), others.names.begin(), others.names.end());
  return names;
}

[[noreturn]] void refuse_key(const std::filesystem::path& file, const config::yaml_setting& setting,
                             const other_settings& others) {
  auto known = known_keys(others);
  auto meant = usage::meant_by(setting.key, known);
  std::string list;
  for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
  config::refuse_at_line(file, setting.key_line,
                         "unknown key '" + setting.key + "'" +
                             (meant.empty() ? "." : "; did you mean '" + meant + "'?") +
                             " Known keys: " + list);
}

void apply_setting(const std::filesystem::path& file, const config::yaml_setting& setting,
                   job_options& options, const other_settings& others) {
  const auto* field = config::find_job_field(setting.key);
  if (setting.is_null && (field || std::ranges::find(others.names, setting.key) != others.names.end()))
    return;
  if (!field && others.take(setting)) return;
  if (!field) refuse_key(file, setting, others);
  try {
    field->set(setting.value, options);
  } catch (const bad_input& problem) {
    config::refuse_at_line(file, setting.value_line, "key '" + setting.key + "': " + problem.what());
  }
}

}  // namespace

void apply_yaml(const std::filesystem::path& file, job_options& options, const other_settings& others) {
  auto changed = options;
  for (const auto& setting : config::read_yaml_settings(file, "configuration file"))
    apply_setting(file, setting, changed, others);
  options = changed;
}

void apply_yaml(const std::filesystem::path& file, job_options& options) { apply_yaml(file, options, {}); }

}  // namespace troupe
