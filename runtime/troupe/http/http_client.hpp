#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe::http {

/// A server that cannot be reached, does not answer in time, or answers with something that is not HTTP.
class http_failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct http_answer {
  int status = 0;
  std::string body;
};

struct http_client_options {
  std::string host = "127.0.0.1";  ///< a name, or an address in numbers without brackets
  std::uint16_t port = 80;
  /// For a request: to connect, to send, and to read the answer. Looking up a name is not part of it.
  std::chrono::milliseconds timeout = std::chrono::seconds(5);
  std::size_t max_body_bytes = std::size_t{256} << 20;  ///< a longer answer is a failure
};

/// Asks an HTTP/1.1 server, over one connection that is made anew when it breaks. Blocks. For one thread at
/// a time.
class http_client {
 public:
  using header = std::pair<std::string, std::string>;

  explicit http_client(http_client_options options);
  ~http_client();
  http_client(const http_client&) = delete;
  http_client& operator=(const http_client&) = delete;

  /// Throws http_failure, which names the server and the cause.
  http_answer get(const std::string& target, const std::vector<header>& headers = {});
  /// Sends the body once, over a connection of its own: what a server may have received is never repeated.
  /// Throws http_failure.
  http_answer post(const std::string& target, const std::string& body,
                   const std::vector<header>& headers = {});

 private:
  class connection;
  http_client_options options_;
  std::unique_ptr<connection> connection_;
};

}  // namespace troupe::http
