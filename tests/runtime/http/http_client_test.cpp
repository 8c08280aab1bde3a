#include "troupe/http/http_client.hpp"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <memory>
#include <thread>

#include "troupe/http/http_server.hpp"
#include "troupe/posix/unique_fd.hpp"

using namespace troupe;
using namespace troupe::http;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

namespace {

/// Answers with what it was asked.
struct echo {
  explicit echo(std::uint16_t port = 0) {
    http_server_options options;
    options.address.port = port;
    server = std::make_unique<http_server>(options, std::make_shared<event_log>());
    server->serve([](const http_request& request) {
      http_response response;
      response.status = request.target == "/missing" ? 404 : 200;
      response.body = request.target + " ";
      if (request.method == "POST") response.body += request.body + " ";
      for (const auto& value : request.values("x-mark")) response.body += value;
      return response;
    });
  }
  std::uint16_t port() const { return server->address().port; }
  std::unique_ptr<http_server> server;
};

/// Takes connections and answers nothing.
class rude_server {
 public:
  rude_server() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at_;
    REQUIRE(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(::listen(fd_.get(), 4) == 0);
    REQUIRE(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&at_), &size) == 0);
  }
  std::uint16_t port() const { return ntohs(at_.sin_port); }
  /// Reads some of a request, and ends its connection.
  void take_and_close() const {
    posix::unique_fd taken(::accept(fd_.get(), nullptr, nullptr));
    char byte = 0;
    while (::read(taken.get(), &byte, 1) == 1 && byte != '\n') continue;
  }
  bool has_another() const {
    pollfd waits{fd_.get(), POLLIN, 0};
    return ::poll(&waits, 1, 0) > 0;
  }

 private:
  posix::unique_fd fd_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in at_{};
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

TEST_CASE("a client sends a body, and headers with it") {
  echo server;
  http_client client({.port = server.port()});
  CHECK(client.post("/a", "{\"b\":1}", {{"X-Mark", "7"}}).body == "/a {\"b\":1} 7");
  CHECK(client.post("/a", "").body == "/a  ");
  CHECK(client.post("/missing", "x").status == 404);
  CHECK(client.get("/a").body == "/a ");
}

TEST_CASE("a client does not send a body again when a server ends the connection without an answer") {
  rude_server server;
  http_client client({.port = server.port()});
  std::thread accepting([&] { server.take_and_close(); });
  CHECK_THROWS_AS(client.post("/a", "body"), http_failure);
  accepting.join();
  CHECK_FALSE(server.has_another());
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
  http_client client({.port = silent.address().port, .timeout = std::chrono::milliseconds(50)});
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
