#pragma once
#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "troupe/config/job_options.hpp"

namespace troupe::config {

/// A field of job_options, of any of the types it has.
using job_member =
    std::variant<int job_options::*, std::uint64_t job_options::*, double job_options::*, bool job_options::*,
                 std::string job_options::*, std::filesystem::path job_options::*,
                 std::chrono::milliseconds job_options::*, schedule_kind job_options::*,
                 dtype job_options::*>;

/// One row of the table that drives YAML and the command line.
struct job_field {
  std::string_view name;  ///< as in job_options and in YAML
  job_member member;
  std::string_view help;
  /// What the option says on the command line without a value; empty: it needs one.
  std::string_view implied = {};

  /// "--snapshot-dir"
  std::string option_name() const;
  /// What kind of value it takes, for help texts: "N", "TIME", "PATH", ...
  std::string_view value_name() const;
  /// Sets the field from `text`, and adds its name to `given`. A field with `implied` takes "true" for that,
  /// and "false" for none. Throws bad_input "expected X, got 'text'"; the caller says where the text stood.
  void set(std::string_view text, job_options& options) const;
  /// The field's value as a text that `set` accepts.
  std::string text(const job_options& options) const;
};

/// Every field, in the order of job_options.
std::span<const job_field> job_fields();

/// Null if no field has this name.
const job_field* find_job_field(std::string_view name);

}  // namespace troupe::config
