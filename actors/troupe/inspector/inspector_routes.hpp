#pragma once
#include <spdlog/logger.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "troupe/http/access_policy.hpp"
#include "troupe/http/http_message.hpp"
#include "troupe/inspector/commands/control_intake.hpp"
#include "troupe/inspector/views/job_view.hpp"
#include "troupe/inspector/views/log_tail.hpp"
#include "troupe/trace/trace.hpp"

namespace troupe::actors::inspector {

/// What an inspector's answers are made of. Pointers outlive the routes.
struct inspector_sources {
  std::shared_ptr<const inspected_job> job;
  std::shared_ptr<log_tail> log;
  const trace::trace_recorder* trace = nullptr;       ///< null: `/trace` says that there is none
  std::shared_ptr<control_intake> control = nullptr;  ///< null: nothing can be changed
  std::shared_ptr<spdlog::logger> logger = nullptr;   ///< whose level is shown; null: none is
};

/// Answers one request of the inspector's API (docs/inspect.md). Blocks nobody and asks no actor: it shows
/// what was published, and posts commands. For one thread.
class inspector_routes {
 public:
  inspector_routes(http::access_policy policy, inspector_sources sources)
      : policy_(std::move(policy)), sources_(std::move(sources)) {}
  http::http_response answer(const http::http_request& request);

  /// A report older than this means that nobody gathers any more (/healthz).
  static constexpr std::int64_t stale_after_ms = 10'000;

 private:
  http::http_response read(const http::http_request& request);
  http::http_response response_to(const http::http_request& request);
  http::http_response control(const http::http_request& request);
  http::http_response health() const;
  http::http_response events(const http::http_request& request) const;
  http::http_response trace() const;
  http::http_response plan(const job_view& view);

  http::access_policy policy_;
  inspector_sources sources_;
  // The newest plan as text: simulating a large one takes a while, and it changes seldom.
  std::shared_ptr<const job::job_definition> shown_job_;
  mesh::hosting shown_hosts_;
  std::string shown_plan_;
};

}  // namespace troupe::actors::inspector
