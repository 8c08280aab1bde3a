#include "troupe/http/access_policy.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using namespace troupe;
using namespace troupe::http;

namespace {

access_policy policy() {
  return {"the-token-of-the-job", "the-session-secret", "troupe_8080", {"/", "/healthz"}, {"node7"}};
}

http_request request(const std::string& method, const std::string& target,
                     std::vector<std::pair<std::string, std::string>> headers) {
  if (headers.empty() || headers[0].first != "host")
    headers.insert(headers.begin(), {"host", "127.0.0.1:8080"});
  return {method, target, std::move(headers)};
}

int status_of(const http_request& one) {
  auto refused = check_access(one, policy());
  return refused ? refused->status : 200;
}

const std::pair<std::string, std::string> bearer = {"authorization", "Bearer the-token-of-the-job"};
const std::pair<std::string, std::string> cookie = {"cookie", "a=b; troupe_8080=the-session-secret; c=d"};
const std::pair<std::string, std::string> own_origin = {"origin", "http://127.0.0.1:8080"};
const std::pair<std::string, std::string> header = {"x-troupe-request", "1"};

}  // namespace

TEST_CASE("reading needs the token, as bearer or as the session's cookie") {
  CHECK(status_of(request("GET", "/api/v1/job", {bearer})) == 200);
  CHECK(status_of(request("GET", "/api/v1/job", {{"authorization", "bearer the-token-of-the-job"}})) == 200);
  CHECK(status_of(request("HEAD", "/api/v1/job", {cookie})) == 200);
  CHECK(status_of(request("GET", "/api/v1/job", {})) == 401);
  CHECK(status_of(request("GET", "/api/v1/job", {{"authorization", "Bearer the-token-of-the-jox"}})) == 401);
  CHECK(status_of(request("GET", "/api/v1/job", {{"authorization", "Bearer "}})) == 401);
  CHECK(status_of(request("GET", "/api/v1/job", {{"authorization", "Basic the-token-of-the-job"}})) == 401);
  CHECK(status_of(request("GET", "/api/v1/job", {bearer, bearer})) == 400);
  CHECK(status_of(request("GET", "/api/v1/job?token=the-token-of-the-job", {})) == 401);
}

TEST_CASE("the token is no session, the session no token, and two cookies of one name are none") {
  CHECK(status_of(request("GET", "/x", {{"cookie", "troupe_8080=the-token-of-the-job"}})) == 401);
  CHECK(status_of(request("GET", "/x", {{"authorization", "Bearer the-session-secret"}})) == 401);
  CHECK(status_of(request("GET", "/x", {{"cookie", "troupe_8081=the-session-secret"}})) == 401);
  CHECK(status_of(request("GET", "/x", {cookie, {"cookie", "troupe_8080=other"}})) == 401);
  CHECK(status_of(request("GET", "/x", {{"authorization", "Bearer wrong"}, cookie})) == 401);
}

TEST_CASE("a policy without secrets lets nobody in") {
  CHECK(check_access(request("GET", "/x", {{"authorization", "Bearer "}}), {}).value().status == 401);
  CHECK(check_access(request("GET", "/x", {{"cookie", "="}}), {}).value().status == 401);
}

TEST_CASE("public paths need no token, but the right host") {
  CHECK(status_of(request("GET", "/healthz", {})) == 200);
  CHECK(status_of(request("GET", "/healthz?x=1", {})) == 200);
  CHECK(status_of(request("GET", "/healthz/more", {})) == 401);
  CHECK(status_of(request("GET", "/healthz", {{"host", "evil.example"}})) == 403);
}

TEST_CASE("a foreign, missing or doubled Host is refused whatever else is right") {
  auto host =
      GENERATE("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "",
               "127.0.0.1:80x", "[::1", "[::1]x", "2130706433", "127.0.0.1:8080:80");
  CHECK(status_of(request("GET", "/api/v1/job", {{"host", host}, bearer})) == 403);
  CHECK(status_of({"GET", "/api/v1/job", {bearer}}) == 400);
  CHECK(status_of(request("GET", "/x", {{"host", "localhost"}, {"host", "localhost"}, bearer})) == 400);
}

TEST_CASE("localhost, addresses and the policy's names are hosts, at any port, for tunnels") {
  auto host =
      GENERATE("localhost:9000", "LOCALHOST", "127.0.0.1", "[::1]:8080", "192.168.0.1:8080", "node7:8080");
  CHECK(status_of(request("GET", "/api/v1/job", {{"host", host}, bearer})) == 200);
}

TEST_CASE("pages of other origins are refused") {
  auto origin = GENERATE("http://evil.example", "null", "https://127.0.0.1:8080", "http://127.0.0.1:3000",
                         "http://localhost:8080", "");
  CHECK(status_of(request("GET", "/api/v1/job", {cookie, {"origin", origin}})) == 403);
  CHECK(status_of(request("GET", "/healthz", {{"origin", origin}})) == 403);
  CHECK(status_of(request("POST", "/api/v1/x", {cookie, header, {"origin", origin}})) == 403);
  CHECK(status_of(request("GET", "/api/v1/job", {cookie, own_origin})) == 200);
}

TEST_CASE("every method that may change something needs the header, and from browsers an origin") {
  auto method = GENERATE("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE", "get", "BREW");
  CHECK(status_of(request(method, "/api/v1/x", {bearer})) == 403);
  CHECK(status_of(request(method, "/healthz", {})) == 403);
  CHECK(status_of(request(method, "/api/v1/x", {cookie, own_origin})) == 403);
  CHECK(status_of(request(method, "/api/v1/x", {cookie, header})) == 403);
  CHECK(status_of(request(method, "/api/v1/x", {header})) == 401);
  CHECK(status_of(request(method, "/healthz", {header})) == 401);
  CHECK(status_of(request(method, "/api/v1/x", {bearer, header})) == 200);
  CHECK(status_of(request(method, "/api/v1/x", {cookie, header, own_origin})) == 200);
}

TEST_CASE("the cookie is strict, and not for scripts") {
  CHECK(session_cookie(policy()) == "troupe_8080=the-session-secret; Path=/; HttpOnly; SameSite=Strict");
}

TEST_CASE("tokens of users are long enough and fit a header") {
  CHECK(token_problem("0123456789abcdef").empty());
  CHECK(token_problem("0123456789abcde").find("got 15") != std::string::npos);
  CHECK_FALSE(token_problem("0123456789 abcdef").empty());
  CHECK_FALSE(token_problem("0123456789abcdef\r\n").empty());
  CHECK_FALSE(token_problem(std::string(257, 'a')).empty());
}
