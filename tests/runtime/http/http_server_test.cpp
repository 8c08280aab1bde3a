#include "troupe/http/http_server.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/http_client.hpp"
#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::http;
using namespace troupe::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Answers with what it was asked.
http_response echo(const http_request& request) {
  if (request.path() == "/throw") throw std::runtime_error("as asked");
  http_response response;
  if (request.path() == "/events")
    response.events_after = number_parameter(request, "after", 0, 0, 1000).value();
  response.body = request.method + " " + request.target + " " + request.body;
  if (request.path() == "/large") response.body = std::string(std::size_t{1} << 20, 'x');
  response.is_to_trusted = !request.values("authorization").empty();
  return response;
}

struct served {
  explicit served(http_server_options options = {}) : server(options, events) { server.serve(echo); }
  std::uint16_t port() const { return server.address().port; }
  std::shared_ptr<event_log> events = std::make_shared<event_log>();
  http_server server;
};

}  // namespace

TEST_CASE("a server answers requests, several on one connection") {
  served one;
  auto answer = ask_http(one.port(), "POST", "/a?b=c", {}, "body");
  CHECK(answer.status == 200);
  CHECK(answer.body == "POST /a?b=c body");
  client_socket connection(one.port());
  for (int i = 0; i < 3; ++i) {
    CHECK(connection.send("GET /again HTTP/1.1\r\nHost: x\r\n\r\n"));
    CHECK_THAT(connection.read_until("GET /again"), ContainsSubstring("HTTP/1.1 200 OK"));
  }
}

TEST_CASE("every answer has the headers that keep browsers safe") {
  served one;
  for (const char* target : {"/", "/throw"}) {
    auto head = ask_http(one.port(), "GET", target).head;
    for (const char* part : {"Content-Security-Policy: default-src 'none'", "frame-ancestors 'none'",
                             "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer",
                             "Cache-Control: no-store", "Content-Length:"})
      CHECK_THAT(head, ContainsSubstring(part));
  }
}

TEST_CASE("a HEAD gets the head of the answer alone") {
  served one;
  auto answer = ask_http(one.port(), "HEAD", "/");
  CHECK(answer.status == 200);
  CHECK(answer.body.empty());
  CHECK_THAT(answer.head, ContainsSubstring("Content-Length: 7"));
}

TEST_CASE("an exception of the handler is the server's error, and the next request is answered") {
  served one;
  auto answer = ask_http(one.port(), "GET", "/throw");
  CHECK(answer.status == 500);
  CHECK_THAT(answer.body, ContainsSubstring("as asked"));
  CHECK(ask_http(one.port(), "GET", "/").status == 200);
}

TEST_CASE("requests that are too large or malformed are refused, and the next is answered") {
  served one;
  CHECK(send_http(one.port(), "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n").status ==
        431);
  CHECK(send_http(one.port(), "GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n")
            .status == 431);
  CHECK(ask_http(one.port(), "POST", "/", {}, std::string(5000, 'a')).status == 413);
  for (const char* bytes :
       {"\r\n\r\n \r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "\x16\x03\x01\x02"}) {
    INFO(bytes);
    CHECK(send_http(one.port(), std::string(bytes) + "\r\n\r\n").status == 400);
  }
  CHECK(ask_http(one.port(), "GET", "/").status == 200);
}

TEST_CASE("a request that does not come to its end is given up") {
  http_server_options options;
  options.request_timeout = std::chrono::milliseconds(20);
  served one(options);
  CHECK(ask_http(one.port(), "POST", "/", {"Transfer-Encoding: chunked"}).status == 0);
  CHECK(send_http(one.port(), "GET / HT").status == 0);
}

TEST_CASE("idle connections are bounded, and do not keep others out") {
  served one;
  std::vector<client_socket> idle;
  for (int i = 0; i < 200; ++i) idle.emplace_back(one.port());
  CHECK(ask_http(one.port(), "GET", "/").status == 200);
  // The first were closed for the later ones.
  CHECK(idle.front().read_all().empty());
}

TEST_CASE(
    "unauthenticated peers that do not read their answers keep nobody out, and keep their places for nobody "
    "else") {
  http_server_options options;
  // So that it is only for places that connections are closed, however slow the machine is.
  options.request_timeout = options.write_timeout = std::chrono::hours(1);
  served one(options);
  client_socket trusted(one.port());
  const std::string ask_trusted = "GET /own HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n\r\n";
  trusted.send(ask_trusted);
  CHECK_THAT(trusted.read_until("GET /own"), ContainsSubstring("200 OK"));
  std::vector<client_socket> stalled;
  for (int i = 0; i < 100; ++i) {
    stalled.emplace_back(one.port());
    stalled.back().send("GET /large HTTP/1.1\r\nHost: x\r\n\r\nGET /large HTTP/1.1\r\nHost: x\r\n\r\n");
    if (i >= 64) CHECK(ask_http(one.port(), "GET", "/").status == 200);
  }
  // It was idle for longer than any of them.
  trusted.send(ask_trusted);
  CHECK_THAT(trusted.read_until("GET /own"), ContainsSubstring("200 OK"));
}

TEST_CASE("of connections that have all shown the token, the one that is idle for longest makes place") {
  http_server_options options;
  options.max_connections = 4;
  served one(options);
  std::vector<client_socket> trusted;
  for (int i = 0; i < 5; ++i) {
    trusted.emplace_back(one.port());
    trusted.back().send("GET /own HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n\r\n");
    CHECK_THAT(trusted.back().read_until("GET /own"), ContainsSubstring("200 OK"));
  }
  CHECK(trusted.front().read_all().empty());
}

TEST_CASE("a stream sends events as they come, from the one on that a client asks for") {
  served one;
  one.events->append("n", "1");
  one.events->append("n", "2");
  client_socket connection(one.port());
  connection.send("GET /events?after=1 HTTP/1.1\r\nHost: x\r\n\r\n");
  auto text = connection.read_until("data: 2\n\n");
  CHECK_THAT(text, ContainsSubstring("text/event-stream") && !ContainsSubstring("data: 1"));
  for (int i = 3; i < 100; ++i) one.events->append("n", std::to_string(i));
  CHECK_THAT(connection.read_until("data: 99\n\n"), ContainsSubstring("data: 50\n"));
}

TEST_CASE("streams are bounded, and one that ends makes room") {
  http_server_options options;
  options.max_streams = 2;
  served one(options);
  auto open = [&] {
    client_socket connection(one.port());
    connection.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    auto head = connection.read_until("\r\n\r\n");
    return std::pair(std::move(connection), head.substr(9, 3));
  };
  auto first = open(), second = open();
  CHECK(first.second == "200");
  CHECK(open().second == "503");
  { auto ended = std::move(first); }
  while (open().second != "200") {
  }
}

TEST_CASE("a client that does not read its stream costs no memory and is told what it missed") {
  auto events = std::make_shared<event_log>(10);
  http_server server({}, events);
  server.serve(echo);
  client_socket connection(server.address().port);
  connection.send("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
  events->append("n", "\"first\"");
  connection.read_until("\"first\"");
  // More than the system keeps for a connection.
  for (int i = 0; i < 4000; ++i) events->append("n", "\"" + std::string(10'000, 'x') + "\"");
  events->append("n", "\"last\"");
  bool is_told = connection.read_until("\"last\"").find("event: dropped") != std::string::npos;
  CHECK(is_told);
}

TEST_CASE("a port that is in use and an address of others are refused with what to do") {
  served one;
  auto listen_on = [&](const listen_address& at) {
    http_server_options options;
    options.address = at;
    served another(options);
  };
  CHECK_THROWS_AS(listen_on({"127.0.0.1", one.port()}), bad_input);
  CHECK_THROWS_WITH(listen_on({"127.0.0.1", one.port()}), ContainsSubstring("Name another port, or none"));
  CHECK_THROWS_WITH(listen_on({"192.0.2.1", 0}), ContainsSubstring("This machine has no such address"));
}
