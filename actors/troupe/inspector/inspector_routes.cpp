#include "troupe/inspector/inspector_routes.hpp"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "troupe/config/text_file.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/files/snapshot_error.hpp"
#include "troupe/inspector/page_files.hpp"
#include "troupe/inspector/views/views.hpp"
#include "troupe/posix/unix_time.hpp"
#include "troupe/snapshot/folder_layout.hpp"

namespace troupe::actors::inspector {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* json_type = "application/json";
constexpr const char* session_path = "/api/v1/session";
constexpr std::string_view control_path = "/api/v1/control/";
constexpr std::uint64_t most_number = std::numeric_limits<std::int64_t>::max();

http::http_response with_text(std::string body, std::string_view type = json_type) {
  http::http_response response;
  response.content_type = type;
  response.body = std::move(body);
  return response;
}

http::http_response with_json(const json& value) { return with_text(text_of(value) + "\n"); }

/// As --log-level names it.
std::string level_name(spdlog::level::level_enum level) {
  if (level == spdlog::level::warn) return "warn";
  auto name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

http::http_response bad_number(const char* name) {
  return http::refusal(400, std::string("expected a whole number as '") + name + "'");
}

http::http_response not_allowed(const std::string& text, const char* allowed) {
  auto response = http::refusal(405, text);
  response.headers.emplace_back("Allow", allowed);
  return response;
}

/// A private folder that is removed with this object.
class private_folder {
 public:
  private_folder() {
    auto name = (std::filesystem::temp_directory_path() / "troupe-trace-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw system_failure("make the folder " + name, errno);
    path_ = name;
  }
  ~private_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  private_folder(const private_folder&) = delete;
  private_folder& operator=(const private_folder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

json api_index(bool takes_commands) {
  json paths = json::array();
  for (const char* path : {"schema", "job", "processes", "devices", "actors", "links", "plan", "timeline",
                           "metrics", "findings", "snapshots", "commands", "log", "events"})
    paths.push_back(std::string("/api/v1/") + path);
  if (takes_commands)
    for (const char* action : {"pause", "resume", "step", "snapshot", "log_level", "restart", "kill"})
      paths.push_back(std::string(control_path) + action);
  for (const char* path : {"/metrics", "/healthz", "/trace"}) paths.push_back(path);
  return {{"version", 1}, {"paths", paths}};
}

/// The snapshots that the folder has at this moment, and not what once was written: newest first. None: there
/// is no folder, or it cannot be read.
std::optional<std::vector<std::uint64_t>> steps_on_disk(const job_view& view) {
  if (!view.scheduler || !view.scheduler->job) return {};
  const auto& folder = view.scheduler->job->snapshots.folder;
  if (folder.empty()) return {};
  try {
    auto steps = snapshot::steps_in(folder);
    std::erase_if(steps, [&](std::uint64_t step) {
      std::error_code ignored;
      return !std::filesystem::exists(
          folder / snapshot::step_folder_name(step) / snapshot::manifest_file_name, ignored);
    });
    return steps;
  } catch (const files::snapshot_error&) {
    return {};
  }
}

}  // namespace

http::http_response inspector_routes::answer(const http::http_request& request) {
  auto response = response_to(request);
  response.is_to_trusted = shows_token(request, policy_);
  return response;
}

http::http_response inspector_routes::response_to(const http::http_request& request) {
  if (auto refused = check_access(request, policy_)) return *std::move(refused);
  bool reads = request.method == "GET" || request.method == "HEAD";
  if (request.path() == session_path) {
    if (request.method != "POST") return not_allowed("a session is made with POST", "POST");
    http::http_response made;
    made.status = 204;
    made.headers.emplace_back("Set-Cookie", session_cookie(policy_));
    return made;
  }
  if (request.path().starts_with(control_path)) return control(request);
  return reads ? read(request)
               : not_allowed("only /api/v1/control/ takes commands: use GET here, or HEAD", "GET, HEAD");
}

http::http_response inspector_routes::control(const http::http_request& request) {
  if (request.method != "POST") return not_allowed("a command is given with POST", "POST");
  if (sources_.control) return sources_.control->take(request.path().substr(control_path.size()), request);
  auto refused =
      with_json({{"error",
                  "this job takes no commands: start it with --inspect-control to let those with the "
                  "token pause it, take snapshots, and restart or kill its actors and processes"}});
  refused.status = 403;
  return refused;
}

http::http_response inspector_routes::read(const http::http_request& request) {
  auto path = request.path();
  const auto& job = *sources_.job;
  for (const auto& file : page_files())
    if (file.path == path) return with_text(std::string(file.text), file.content_type);
  if (path == "/")
    return with_text("Troupe's inspector. Its web page is missing, since " + std::string(page_missing()) +
                         ". The API is below /api/v1/, and its schema /api/v1/schema. Send the token of the "
                         "job's start as 'Authorization: Bearer TOKEN'.\n",
                     "text/plain; charset=utf-8");
  if (path == "/healthz") return health();
  if (path == "/trace") return trace();
  if (path == "/api/v1/" || path == "/api/v1") return with_json(api_index(sources_.control != nullptr));
  if (path == "/api/v1/schema") return with_text(api_schema());
  if (path == "/api/v1/events") return events(request);
  if (path == "/api/v1/metrics") {
    auto after = number_parameter(request, "after", 0, 0, most_number);
    auto limit = number_parameter(request, "limit", 1000, 1, metrics_history::max_kept);
    if (!after) return bad_number("after");
    if (!limit) return http::refusal(400, "expected a number from 1 to 10000 as 'limit'");
    return with_json(metrics_json(job.metrics().after(*after, static_cast<std::size_t>(*limit))));
  }
  if (path == "/api/v1/commands")
    return with_json({{"commands", job.commands() ? job.commands()->rows() : json::array()}});
  if (path == "/api/v1/log") {
    auto after = number_parameter(request, "after", 0, 0, most_number);
    if (!after) return bad_number("after");
    return with_json(log_json(sources_.log ? sources_.log->after(*after) : std::vector<log_tail::line>()));
  }
  auto view = job.view();
  if (!view) view = std::make_shared<job_view>();
  if (path == "/metrics")
    return with_text(prometheus_text(*view, job.metrics(), posix::unix_now_ms()),
                     "text/plain; version=0.0.4; charset=utf-8");
  if (path == "/api/v1/job") {
    auto shown = job_json(job.job_id(), *view, job.metrics());
    shown["control"] = sources_.control != nullptr;
    shown["log_level"] = sources_.logger ? json(level_name(sources_.logger->level())) : json();
    return with_json(shown);
  }
  if (path == "/api/v1/processes") return with_json(processes_json(*view));
  if (path == "/api/v1/devices") return with_json(devices_json(*view));
  if (path == "/api/v1/actors") return with_json(actors_json(*view));
  if (path == "/api/v1/links") return with_json(links_json(*view));
  if (path == "/api/v1/findings") return with_json(findings_json(*view));
  if (path == "/api/v1/snapshots") return with_json(snapshots_json(*view, steps_on_disk(*view)));
  if (path == "/api/v1/timeline") return with_json(timeline_json(*view));
  if (path == "/api/v1/plan") return plan(*view);
  return http::refusal(404, "there is nothing here: /api/v1/ lists what there is");
}

/// Whether somebody gathers what is shown. A job that is starting is healthy.
http::http_response inspector_routes::health() const {
  auto view = sources_.job->view();
  auto age_ms = view && view->at_ms > 0 ? posix::unix_now_ms() - view->at_ms : 0;
  auto response = with_json(json{{"status", age_ms > stale_after_ms ? "stale" : "ok"},
                                 {"age_s", static_cast<double>(age_ms) / 1000}});
  if (age_ms > stale_after_ms) response.status = 503;
  return response;
}

/// Browsers say where they go on in a header, others may in the address.
http::http_response inspector_routes::events(const http::http_request& request) const {
  http::http_response response;
  response.content_type = "text/event-stream";
  auto last = request.values("last-event-id");
  if (last.empty()) {
    response.events_after = number_parameter(request, "after", 0, 0, most_number);
    return response.events_after ? response : bad_number("after");
  }
  std::uint64_t id = 0;
  auto* end = last[0].data() + last[0].size();
  auto [stop, status] = std::from_chars(last[0].data(), end, id);
  if (status != std::errc() || stop != end) return bad_number("Last-Event-ID");
  response.events_after = id;
  return response;
}

http::http_response inspector_routes::trace() const {
  if (!sources_.trace) return http::refusal(404, "this process records no events");
  private_folder folder;
  auto file = folder.path() / "trace.json";
  sources_.trace->write_perfetto(file);
  return with_text(config::read_text_file(file, "trace"));
}

http::http_response inspector_routes::plan(const job_view& view) {
  auto job = view.scheduler ? view.scheduler->job : nullptr;
  auto hosts = view.scheduler ? view.scheduler->hosts : mesh::hosting();
  if (shown_plan_.empty() || job != shown_job_ || !(hosts == shown_hosts_)) {
    shown_plan_ = text_of(plan_json(view)) + "\n";
    shown_job_ = job;
    shown_hosts_ = hosts;
  }
  return with_text(shown_plan_);
}

}  // namespace troupe::actors::inspector
