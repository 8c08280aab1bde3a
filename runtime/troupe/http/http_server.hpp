#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "troupe/http/event_log.hpp"
#include "troupe/http/http_message.hpp"
#include "troupe/http/listen_address.hpp"

namespace troupe::http {

struct http_server_options {
  listen_address address;
  /// Connections at a time. Beyond, one is closed for a new one: the first of these that exists.
  /// 1. Of those whose last request has not shown the token (http_response::is_to_trusted), the one that has
  ///    waited for its client for longest, with a request or with taking a response.
  /// 2. Of the others, the one that has been idle for longest.
  /// 3. The new one.
  std::size_t max_connections = 64;
  /// Of these, places that only connections which have shown the token take; half of all at most.
  std::size_t kept_connections = 16;
  /// What the system keeps of a response that a client does not take.
  int send_buffer_bytes = 128 << 10;
  /// Of these, streams of events; further requests for one get status 503.
  std::size_t max_streams = 16;
  /// Larger headers get status 431, larger bodies 413.
  std::size_t max_head_bytes = 8192;
  std::size_t max_body_bytes = 4096;
  /// From the end of a response to the end of the next request.
  std::chrono::milliseconds request_timeout = std::chrono::seconds(10);
  /// A client that takes nothing for this long is disconnected.
  std::chrono::milliseconds write_timeout = std::chrono::seconds(10);
  /// A comment is sent on a stream without events, so that dead clients are noticed.
  std::chrono::milliseconds heartbeat = std::chrono::seconds(15);
};

/// Answers HTTP/1.1 requests on a thread of its own (Boost.Beast, asynchronous). Malformed requests get
/// status 400 and end their connection; an exception of the handler is status 500.
class http_server {
 public:
  /// Called on the server's thread, one at a time: it must not block.
  using handler = std::function<http_response(const http_request&)>;

  /// Listens when this returns; connections wait for `serve`. `events` are the streams'
  /// (http_response::events_after). Throws bad_input, with what to do, if it cannot listen there.
  http_server(const http_server_options& options, std::shared_ptr<event_log> events);
  /// Ends all connections.
  ~http_server();
  http_server(const http_server&) = delete;
  http_server& operator=(const http_server&) = delete;

  /// Starts to answer. To be called once.
  void serve(handler answer);
  /// With the port that it listens on.
  const listen_address& address() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

}  // namespace troupe::http
