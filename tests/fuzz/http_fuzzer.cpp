// Bytes of a connection, through the server's parser, its policy and its streams.
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <memory>

#include "fuzz/fuzzer.hpp"
#include "troupe/http/access_policy.hpp"
#include "troupe/http/http_connection.hpp"

namespace troupe::fuzz {
namespace {

const std::string token = "a-token-that-is-secret", session = "a-session-that-is-secret";

struct server {
  http::http_server_options options;
  http::event_log events;
  http::access_policy policy{token, session, "troupe_1", {"/healthz"}, {}};
  std::size_t num_streams = 0;
  bool let_in = false;  ///< somebody got what needs the token
  http::http_server::handler answer = [this](const http::http_request& request) {
    return answer_to(request);
  };

  server() {
    for (int i = 0; i < 3; ++i) events.append("step", "{}");
    options.heartbeat = std::chrono::milliseconds(1);
    options.write_timeout = options.request_timeout = std::chrono::seconds(1);
  }

  http::http_response answer_to(const http::http_request& request) {
    if (auto refused = check_access(request, policy)) return *std::move(refused);
    let_in = let_in || request.path() != "/healthz";
    http::http_response made;
    made.body = request.body;
    if (request.path() == "/events") made.events_after = number_parameter(request, "after", 0, 0, 100);
    if (request.path() == "/session") made.headers.emplace_back("Set-Cookie", session_cookie(policy));
    return made;
  }
};

/// A connection whose client has sent these bytes and reads nothing more.
void serve(server& by, std::span<const std::byte> bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair");
  boost::asio::io_context context(1);
  boost::asio::ip::tcp::socket socket(context);
  socket.assign(boost::asio::ip::tcp::v4(), ends[0]);
  std::make_shared<http::http_connection>(
      std::move(socket), http::http_connection_context{by.options, by.answer, by.events, by.num_streams})
      ->begin();
  for (std::size_t sent = 0; sent < bytes.size();) {
    auto more = ::send(ends[1], bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (more <= 0) break;
    sent += static_cast<std::size_t>(more);
    context.poll();
  }
  ::shutdown(ends[1], SHUT_WR);
  context.restart();
  for (int i = 0; i < 1000 && !context.stopped(); ++i) context.poll();
  ::close(ends[1]);
  context.run();
}

}  // namespace

void try_input(std::span<const std::byte> bytes) {
  server by;
  serve(by, bytes);
  expect(by.num_streams == 0, "a stream is counted that has ended");
  auto text = text_of(bytes);
  expect(!by.let_in || text.find(token) != text.npos || text.find(session) != text.npos,
         "a request without token or session was let in");
}

std::vector<std::string> seeds() {
  std::vector<std::string> made;
  auto host = "Host: localhost\r\n";
  auto bearer = "Authorization: Bearer " + token + "\r\n",
       cookie = "Cookie: a=b; troupe_1=" + session + "\r\n";
  for (const char* path : {"/", "/healthz", "/events?after=2", "/events?after=%31", "/nothing?a=%%&b"})
    made.push_back(std::string("GET ") + path + " HTTP/1.1\r\n" + host + bearer + "\r\n");
  made.push_back("GET /events HTTP/1.1\r\n" + (host + cookie) + "Last-Event-ID: 1\r\n\r\n");
  made.push_back("HEAD /events HTTP/1.0\r\n" + (host + cookie) + "Connection: close\r\n\r\n");
  made.push_back("POST /session HTTP/1.1\r\n" + (host + bearer) +
                 "X-Troupe-Request: 1\r\nOrigin: http://localhost\r\nContent-Length: 2\r\n\r\n{}");
  made.push_back("POST /session HTTP/1.1\r\n" + (host + bearer) +
                 "X-Troupe-Request: 1\r\nTransfer-Encoding: chunked\r\nExpect: "
                 "100-continue\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
  made.push_back("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\nGET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  return made;
}

}  // namespace troupe::fuzz
