#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

struct http_answer {
  int status = 0;  ///< 0: the server has closed the connection without an answer
  std::string head, body;
};

/// A connection to 127.0.0.1 that is closed with this object.
class client_socket {
 public:
  explicit client_socket(std::uint16_t port);
  ~client_socket();
  client_socket(client_socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  client_socket(const client_socket&) = delete;
  client_socket& operator=(const client_socket&) = delete;

  /// False: the other side has closed it.
  bool send(const std::string& bytes) const;
  /// Reads until `text` has come, or the connection has ended, and returns all that came.
  std::string read_until(const std::string& text) const;
  /// Reads to the connection's end.
  std::string read_all() const { return read_until(""); }

 private:
  int fd_ = -1;
};

/// Sends the bytes and reads the answer, to the connection's end.
http_answer send_http(std::uint16_t port, const std::string& bytes);

/// A request in HTTP/1.1 with Host and "Connection: close"; `headers` are lines without their ends.
http_answer ask_http(std::uint16_t port, const std::string& method, const std::string& target,
                     const std::vector<std::string>& headers = {}, const std::string& body = {});

}  // namespace troupe::testing
