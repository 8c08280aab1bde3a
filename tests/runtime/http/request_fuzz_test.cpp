// Requests drawn at random and cut, doubled or changed at random: the server answers or refuses each, and
// goes on.
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <random>
#include <set>

#include "support/http_client.hpp"
#include "troupe/http/access_policy.hpp"
#include "troupe/http/http_server.hpp"
#include "troupe/http/listen_address.hpp"

using namespace troupe;
using namespace troupe::http;
using namespace troupe::testing;

namespace {

const std::string token = "a-token-that-is-secret";

class drawn_requests {
 public:
  explicit drawn_requests(unsigned seed) : random_(seed) {}

  std::string next() {
    auto text = pick({"GET", "POST", "HEAD", "DELETE", "", "G\0T"}) + " " +
                pick({"/", "/api/v1/job", "/healthz?a=%%%", "*", "http://x/", "/" + std::string(9000, '%')}) +
                " " + pick({"HTTP/1.1", "HTTP/1.0", "HTTP/2.0", ""}) + "\r\n";
    for (int i = 0, count = number(8); i < count; ++i) text += header() + pick({"\r\n", "\r\n", "\n", "\r"});
    text += pick({"\r\n", "\r\n", ""}) + pick({"", "body", "5\r\nabcde\r\n0\r\n\r\n"});
    for (int i = 0, count = number(3); i < count && !text.empty(); ++i) damage(text);
    return text;
  }
  std::string bytes(int most) {
    std::string text;
    for (int i = 0, count = number(most); i < count; ++i) text += static_cast<char>(number(256));
    return text;
  }
  int number(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::string pick(const std::vector<std::string>& from) {
    return from[static_cast<std::size_t>(number(static_cast<int>(from.size())))];
  }

 private:
  std::string header() {
    return pick({"Host: 127.0.0.1", "Host: evil", "Connection: close", "Connection: upgrade",
                 "Authorization: Bearer " + token, "Authorization: " + bytes(40),
                 "Cookie: a=b;;=;" + bytes(20), "Content-Length: 4", "Content-Length: 99999999999999999999",
                 "Transfer-Encoding: chunked", "Expect: 100-continue", "Origin: " + bytes(10),
                 "X: " + std::string(3000, 'x'), ": ", bytes(30)});
  }
  void damage(std::string& text) {
    auto at = static_cast<std::size_t>(number(static_cast<int>(text.size())));
    switch (number(3)) {
      case 0:
        return text.resize(at);
      case 1:
        text[at] = static_cast<char>(number(256));
        return;
      default:
        text.insert(at, text.substr(at, 20));
    }
  }
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("drawn requests are answered or refused, none without the token sees anything") {
  access_policy policy{token, "a-session-secret", "troupe_1", {"/healthz"}, {}};
  auto answer = [policy](const http_request& request) {
    if (auto refused = check_access(request, policy)) return *refused;
    http_response response;
    response.body = "the secret of the job";
    return response;
  };
  http_server_options options;
  options.max_connections = 8;
  http_server server(options, std::make_shared<event_log>());
  server.serve(answer);
  drawn_requests drawn(7);
  std::set<int> seen;
  for (int i = 0; i < 600; ++i) {
    auto bytes = drawn.next();
    client_socket connection(server.address().port);
    connection.send(bytes);
    if (i % 10 != 0) continue;                      // closed without reading what came
    bytes = drawn.next() + "\r\n\r\n\xff\r\n\r\n";  // ends in what is no request, so that the server ends it
    auto text = send_http(server.address().port, bytes);
    seen.insert(text.status);
    if (bytes.find(token) == std::string::npos && bytes.find("/healthz") == std::string::npos)
      CHECK((text.head + text.body).find("the secret of the job") == std::string::npos);
  }
  CHECK(seen.contains(400));
  CHECK(ask_http(server.address().port, "GET", "/", {"Authorization: Bearer " + token}).body ==
        "the secret of the job");
}

TEST_CASE("the policy refuses drawn headers without the secrets") {
  access_policy policy{token, "a-session-secret", "troupe_1", {}, {}};
  drawn_requests drawn(11);
  for (int i = 0; i < 20'000; ++i) {
    http_request request{drawn.pick({"GET", "POST", drawn.bytes(8)}), "/" + drawn.bytes(20)};
    request.headers.emplace_back("host", drawn.pick({"localhost", "127.0.0.1", drawn.bytes(12)}));
    if (drawn.number(2) == 0)
      request.headers.emplace_back("authorization", drawn.pick({"Bearer ", "bearer", ""}) + drawn.bytes(30));
    if (drawn.number(2) == 0)
      request.headers.emplace_back("cookie", drawn.pick({"troupe_1=", "troupe_1", ";"}) + drawn.bytes(30));
    if (drawn.number(4) == 0) request.headers.emplace_back("x-troupe-request", drawn.bytes(3));
    if (drawn.number(4) == 0) request.headers.emplace_back("origin", drawn.bytes(20));
    CHECK(check_access(request, policy).has_value());
    request.parameter(drawn.bytes(3));
    static_cast<void>(number_parameter(request, "a", 0, 0, 1));
  }
}
