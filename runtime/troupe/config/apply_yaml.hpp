#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "troupe/config/job_options.hpp"
#include "troupe/config/yaml_settings.hpp"

namespace troupe {

/// Keys of a YAML file that are no fields of job_options.
struct other_settings {
  /// Those that messages name beside the fields.
  std::vector<std::string> names = {};
  /// Whether the setting was taken; one that was not is refused.
  std::function<bool(const config::yaml_setting&)> take = [](const config::yaml_setting&) { return false; };
};

/// As apply_yaml(file, options) of job_options.hpp, for files that say more than the options of a job.
void apply_yaml(const std::filesystem::path& file, job_options& options, const other_settings& others);

}  // namespace troupe
