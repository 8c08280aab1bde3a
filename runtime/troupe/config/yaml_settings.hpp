#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::config {

/// One "key: value" line of a YAML file. Lines count from 1.
struct yaml_setting {
  std::string key, value;
  int key_line = 0, value_line = 0;
  bool is_null = false;  ///< the value is the word null or ~, YAML's for "not set"
};

/// The lines of a file that has nothing but "key: value" lines and comments, in order; none of an empty file.
/// Throws bad_input with file and line for anything else, such as a key without a value, and for a key that
/// is there twice. `what` the file is, for its errors: "configuration file".
std::vector<yaml_setting> read_yaml_settings(const std::filesystem::path& file, const std::string& what);

/// The key as read_yaml_settings reads it: in quotes where it needs them.
std::string yaml_key(const std::string& key);

/// Throws bad_input "FILE:LINE: PROBLEM".
[[noreturn]] void refuse_at_line(const std::filesystem::path& file, int line, const std::string& problem);

}  // namespace troupe::config
