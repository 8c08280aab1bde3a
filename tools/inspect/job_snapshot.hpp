#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe {

/// What an inspector told of a job at one time.
struct job_snapshot {
  std::int64_t at_ms = 0;  ///< Unix time; 0: nothing was told yet
  /// The answers by the last part of their path: {"job": ..., "actors": ...}, see docs/inspect.md.
  nlohmann::ordered_json parts = nlohmann::ordered_json::object();

  /// An empty object if it was not told.
  const nlohmann::ordered_json& part(const std::string& name) const;
  /// The array that a part consists of: rows("actors"). Empty if it was not told.
  const nlohmann::ordered_json& rows(const std::string& name) const;
};

/// The paths below /api/v1/ of which a snapshot consists.
const std::vector<std::string>& snapshot_parts();

// Of JSON that others may have made: a member that is missing, null or of another type is `otherwise`.
std::string text_in(const nlohmann::ordered_json& object, const char* name,
                    const std::string& otherwise = "");
double number_in(const nlohmann::ordered_json& object, const char* name, double otherwise = 0);
bool has_number(const nlohmann::ordered_json& object, const char* name);

}  // namespace troupe
