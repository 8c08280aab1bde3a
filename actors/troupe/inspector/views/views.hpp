#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "troupe/inspector/views/job_view.hpp"
#include "troupe/inspector/views/log_tail.hpp"

namespace troupe::actors::inspector {

// What the API shows, each a function of what is known (docs/inspect.md; api_schema says their form). Times
// of the clock are milliseconds of Unix time (`..._ms`), durations seconds, sizes bytes; what is not known is
// null.
nlohmann::ordered_json job_json(const std::string& job_id, const job_view& view,
                                const metrics_history& metrics);
nlohmann::ordered_json processes_json(const job_view& view);
nlohmann::ordered_json devices_json(const job_view& view);
nlohmann::ordered_json actors_json(const job_view& view);
nlohmann::ordered_json links_json(const job_view& view);
nlohmann::ordered_json plan_json(const job_view& view);
nlohmann::ordered_json timeline_json(const job_view& view);
nlohmann::ordered_json findings_json(const job_view& view);
/// `on_disk`: the steps of the snapshots in the folder, as runs of the plan, newest first; none: not known.
nlohmann::ordered_json snapshots_json(const job_view& view,
                                      const std::optional<std::vector<std::uint64_t>>& on_disk);
nlohmann::ordered_json metrics_json(const metrics_history::piece& steps);
nlohmann::ordered_json log_json(const std::vector<log_tail::line>& lines);

/// The replica or slice of a stage, `index`; null for other actors.
nlohmann::ordered_json lane_json(const actor::child_id& child, int index);

/// As text. Bytes that are no UTF-8 are replaced.
std::string text_of(const nlohmann::ordered_json& value);

/// In the text format of Prometheus, version 0.0.4: base units, and no label that grows with the job's
/// actors.
std::string prometheus_text(const job_view& view, const metrics_history& metrics, std::int64_t now_ms);

/// The JSON schema (draft 2020-12) of all answers: each is `#/$defs/NAME` for the last part of its path.
const char* api_schema();

}  // namespace troupe::actors::inspector
