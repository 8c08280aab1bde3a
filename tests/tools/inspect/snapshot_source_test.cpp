#include "inspect/snapshot_source.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <set>
#include <string>

#include "troupe/http/http_server.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Reads from a server that has these parts of /api/v1 alone. Returns the refusal, or "read".
std::string read_from(const std::set<std::string>& parts) {
  http::http_server server({}, std::make_shared<http::event_log>());
  server.serve([&parts](const http::http_request& request) {
    http::http_response response;
    response.body = "{\"" + std::string(request.path()) + "\":1}";
    if (!parts.contains(std::string(request.path()))) response.status = 404;
    return response;
  });
  try {
    snapshot_source({.host = "127.0.0.1", .port = server.address().port, .token = "t"}).read();
  } catch (const inspector_refusal& refusal) {
    return refusal.what();
  }
  return "read";
}

}  // namespace

TEST_CASE("a job whose inspector is of another version is refused, and no inspector is") {
  CHECK(read_from({"/api/v1/job", "/api/v1/processes", "/api/v1/commands"}) ==
        "read");  // others may be missing
  CHECK_THAT(read_from({"/api/v1/job", "/api/v1/nodes", "/api/v1/commands"}),
             ContainsSubstring("/api/v1/processes"));
  CHECK_THAT(read_from({"/api/v1/job", "/api/v1/processes", "/api/v1/orders"}),
             ContainsSubstring("another version") && ContainsSubstring("no /api/v1/commands"));
  CHECK_THAT(read_from({}), ContainsSubstring("no inspector of Troupe"));
}
