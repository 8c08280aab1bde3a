#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "troupe/config/job_fields.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

std::string contents_of(const std::filesystem::path& file) {
  auto refuse = [&](const std::string& why) {
    throw bad_input("cannot read the configuration file '" + file.string() + "': " + why);
  };
  if (std::filesystem::is_directory(file)) refuse("it is a folder");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(std::strerror(errno));
  std::ostringstream text;
  text << stream.rdbuf();
  if (stream.bad()) refuse(std::strerror(errno));
  return text.str();
}

/// `at` counts lines from 0.
[[noreturn]] void refuse_at(const std::filesystem::path& file, const YAML::Mark& at,
                            const std::string& problem) {
  throw bad_input(file.string() + ":" + std::to_string(at.line + 1) + ": " + problem);
}

std::string known_keys() {
  std::string names;
  for (const auto& field : job_fields()) names += (names.empty() ? "" : ", ") + std::string(field.name);
  return names;
}

void apply_setting(const std::filesystem::path& file, const YAML::Node& key, const YAML::Node& value,
                   job_options& options) {
  if (!key.IsScalar()) refuse_at(file, key.Mark(), "expected a key, got a list or a map");
  const auto& name = key.Scalar();
  const auto* field = find_job_field(name);
  if (!field)
    refuse_at(file, key.Mark(),
              "unknown key '" + name + "'; did you mean '" + std::string(nearest_job_field(name).name) +
                  "'? Known keys: " + known_keys());
  if (!value.IsScalar())
    refuse_at(file, key.Mark(),
              "key '" + name + "': expected one value, got " + (value.IsNull() ? "none" : "a list or a map"));
  try {
    field->set(value.Scalar(), options);
  } catch (const bad_input& problem) {
    refuse_at(file, value.Mark(), "key '" + name + "': " + problem.what());
  }
}

YAML::Node parse(const std::filesystem::path& file, const std::string& text) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& problem) {
    refuse_at(file, problem.mark, problem.msg);
  }
}

}  // namespace

void apply_yaml(const std::filesystem::path& file, job_options& options) {
  auto root = parse(file, contents_of(file));
  if (root.IsNull()) return;
  if (!root.IsMap())
    refuse_at(
        file, root.Mark(),
        "expected 'key: value' lines, got a " + std::string(root.IsSequence() ? "list" : "single value"));
  auto changed = options;
  std::set<std::string> seen;
  for (const auto& setting : root) {
    apply_setting(file, setting.first, setting.second, changed);
    if (!seen.insert(setting.first.Scalar()).second)
      refuse_at(file, setting.first.Mark(),
                "key '" + setting.first.Scalar() + "' is there twice: remove one");
  }
  options = changed;
}

}  // namespace troupe
