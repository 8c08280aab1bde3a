#pragma once
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "troupe/http/http_server.hpp"

namespace troupe::http {

/// What a connection needs of its server. All outlives the connection.
struct http_connection_context {
  const http_server_options& options;
  const http_server::handler& answer;
  const event_log& events;
  std::size_t& num_streams;
};

/// One connection of an http_server: reads requests and writes their responses, one after the other, or one
/// stream of events. Lives as long as an operation of it is under way. Runs on the server's thread.
class http_connection : public std::enable_shared_from_this<http_connection> {
 public:
  http_connection(boost::asio::ip::tcp::socket socket, const http_connection_context& context);
  ~http_connection();
  http_connection(const http_connection&) = delete;
  http_connection& operator=(const http_connection&) = delete;

  void begin() { read(); }
  /// New events are there.
  void wake();
  void close();
  /// Since when it waits for its client: to send a complete request, or to take a response.
  std::chrono::steady_clock::time_point waits_since() const { return waits_since_; }
  /// It waits for a request.
  bool is_idle() const { return is_idle_; }
  /// Its last request has shown the server's token.
  bool is_trusted() const { return is_trusted_; }

 private:
  using error = boost::system::error_code;
  void wait_for_client(bool is_idle);
  void read();
  std::string caller() const;
  void on_read(const error& problem);
  void refuse(const error& problem);
  void write(http_response response, bool ends);
  void begin_stream(std::uint64_t after);
  void pump();
  void send_text(std::string text);
  void wait_for_events();
  void drain();
  void drain_more();

  // constant
  http_connection_context context_;

  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  std::string outgoing_;
  std::chrono::steady_clock::time_point waits_since_;
  bool is_idle_ = true, is_trusted_ = false;

  // a stream of events
  bool is_stream_ = false, is_writing_ = false;
  std::uint64_t last_event_ = 0;
  boost::asio::steady_timer heartbeat_;
};

}  // namespace troupe::http
