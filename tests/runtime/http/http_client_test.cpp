#include "troupe/http/http_client.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <thread>

#include "troupe/http/http_server.hpp"

using namespace troupe;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Answers with what it was asked.
struct echo {
  explicit echo(std::uint16_t port = 0) {
    http_server_options options;
    options.at.port = port;
    server = std::make_unique<http_server>(options, std::make_shared<event_log>());
    server->serve([](const http_request& request) {
      http_response response;
      response.status = request.target == "/missing" ? 404 : 200;
      response.body = request.target + " ";
      for (const auto& value : request.values("x-mark")) response.body += value;
      return response;
    });
  }
  std::uint16_t port() const { return server->at().port; }
  std::unique_ptr<http_server> server;
};

}  // namespace

TEST_CASE("a client gets answers, and statuses that are no success") {
  echo server;
  http_client client({.port = server.port()});
  auto answer = client.get("/a", {{"X-Mark", "7"}});
  CHECK(answer.status == 200);
  CHECK(answer.body == "/a 7");
  CHECK(client.get("/missing").status == 404);
  CHECK(client.get("/b").body == "/b ");
}

TEST_CASE("a client connects again to a server that was started again") {
  auto server = std::make_unique<echo>();
  auto port = server->port();
  http_client client({.port = port});
  CHECK(client.get("/a").status == 200);
  server.reset();
  CHECK_THROWS_MATCHES(client.get("/a"), http_failure,
                       MessageMatches(ContainsSubstring("127.0.0.1:" + std::to_string(port))));
  server = std::make_unique<echo>(port);
  CHECK(client.get("/a").status == 200);
}

TEST_CASE("a client does not wait for ever for a server that says nothing") {
  http_server_options options;
  http_server silent(options, std::make_shared<event_log>());  // accepts, and serves nobody yet
  http_client client({.port = silent.at().port, .timeout = std::chrono::milliseconds(50)});
  CHECK_THROWS_MATCHES(client.get("/"), http_failure,
                       MessageMatches(ContainsSubstring("no answer within 50 ms")));
}

TEST_CASE("a client refuses an answer that is too long, and a name that nobody has") {
  echo server;
  http_client brief({.port = server.port(), .max_body_bytes = 3});
  CHECK_THROWS_AS(brief.get("/long"), http_failure);
  http_client nowhere({.host = "no-such-host.invalid", .port = 80});
  CHECK_THROWS_AS(nowhere.get("/"), http_failure);
}
