#include "troupe/http/http_connection.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <sstream>
#include <utility>

namespace troupe::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

/// What a stream's client is sent at a time, which is what a connection keeps for it.
constexpr std::size_t max_piece_bytes = 32 << 10;
/// How long a refused client may go on to send before its connection is reset.
constexpr auto drain_time = std::chrono::seconds(1);

http_request request_of(const http::request<http::string_body>& read) {
  http_request request;
  request.method = std::string(read.method_string());
  request.target = std::string(read.target());
  for (const auto& field : read) {
    std::string name(field.name_string());
    std::ranges::transform(name, name.begin(), [](char one) {
      return one >= 'A' && one <= 'Z' ? static_cast<char>(one + 32) : one;
    });
    request.headers.emplace_back(std::move(name), std::string(field.value()));
  }
  request.body = read.body();
  return request;
}

/// On every response: nothing is cached, shown in frames of others or run that is not the server's own.
void add_safety_headers(http::fields& fields) {
  fields.set(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  fields.set("X-Content-Type-Options", "nosniff");
  fields.set("X-Frame-Options", "DENY");
  fields.set("Referrer-Policy", "no-referrer");
  fields.set("Cross-Origin-Resource-Policy", "same-origin");
  fields.set("Cache-Control", "no-store");
}

/// As it goes over the wire; to a HEAD without the body.
std::string text_of(const http::response<http::string_body>& response, bool with_body) {
  std::ostringstream text;
  text << response.base();
  if (with_body) text << response.body();
  return text.str();
}

/// The status of a request that could not be read; 0: the connection has ended.
int status_of(const beast::error_code& problem) {
  if (problem == http::error::header_limit) return 431;
  if (problem == http::error::body_limit) return 413;
  if (problem == http::error::end_of_stream || problem == http::error::partial_message) return 0;
  return problem.category() == http::make_error_code(http::error::bad_value).category() ? 400 : 0;
}

}  // namespace

http_connection::http_connection(asio::ip::tcp::socket socket, const http_connection_context& context)
    : context_(context),
      stream_(std::move(socket)),
      buffer_(context.options.max_head_bytes + context.options.max_body_bytes),
      heartbeat_(stream_.get_executor()) {}

http_connection::~http_connection() {
  if (is_stream_) --context_.num_streams;
}

void http_connection::wait_for_client(bool is_idle) {
  is_idle_ = is_idle;
  waits_since_ = std::chrono::steady_clock::now();
}

void http_connection::read() {
  wait_for_client(true);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(context_.options.max_head_bytes));
  parser_->body_limit(context_.options.max_body_bytes);
  stream_.expires_after(context_.options.request_timeout);
  http::async_read(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](const error& problem, std::size_t) { self->on_read(problem); });
}

std::string http_connection::caller() const {
  error ignored;
  auto from = stream_.socket().remote_endpoint(ignored);
  return to_string(listen_address{from.address().to_string(), from.port()});
}

void http_connection::on_read(const error& problem) {
  if (problem) return refuse(problem);
  wait_for_client(false);
  auto request = request_of(parser_->get());
  request.caller = caller();
  try {
    auto response = context_.answer(request);
    is_trusted_ = response.is_to_trusted;
    if (response.events_after && context_.num_streams >= context_.options.max_streams)
      response = refusal(503, "there are as many streams of events as this server has. Close another one");
    if (response.events_after && request.method != "HEAD") return begin_stream(*response.events_after);
    write(std::move(response), !parser_->get().keep_alive());
  } catch (const std::exception& failure) {
    write(refusal(500, std::string("this request failed: ") + failure.what()), true);
  }
}

void http_connection::refuse(const error& problem) {
  auto status = status_of(problem);
  if (status == 0) return close();
  wait_for_client(false);
  write(refusal(status, "the request cannot be read: " + problem.message()), true);
}

void http_connection::write(http_response response, bool ends) {
  http::response<http::string_body> made;
  made.result(static_cast<unsigned>(response.status));
  made.version(11);
  add_safety_headers(made);
  made.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) made.set(name, value);
  made.body() = std::move(response.body);
  made.keep_alive(!ends);
  made.prepare_payload();
  if (made.result() == http::status::no_content) made.erase(http::field::content_length);
  outgoing_ = text_of(made, parser_->get().method() != http::verb::head);
  stream_.expires_after(context_.options.write_timeout);
  asio::async_write(stream_, asio::buffer(outgoing_),
                    [self = shared_from_this(), ends](const error& problem, std::size_t) {
                      if (problem) return self->close();
                      if (ends) return self->drain();
                      self->read();
                    });
}

/// A client that is still sending would not see the response if its connection were reset at once.
void http_connection::drain() {
  error ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  wait_for_client(true);
  stream_.expires_after(drain_time);
  drain_more();
}

void http_connection::drain_more() {
  buffer_.clear();
  stream_.async_read_some(buffer_.prepare(context_.options.max_head_bytes),
                          [self = shared_from_this()](const error& problem, std::size_t) {
                            if (problem) return self->close();
                            self->drain_more();
                          });
}

void http_connection::close() {
  error ignored;
  heartbeat_.cancel();
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  stream_.close();
}

// ---- a stream of events

void http_connection::begin_stream(std::uint64_t after) {
  is_stream_ = true;
  ++context_.num_streams;
  last_event_ = after;
  http::response<http::string_body> head;
  head.result(http::status::ok);
  head.version(11);
  add_safety_headers(head);
  head.set(http::field::content_type, "text/event-stream");
  head.keep_alive(false);
  send_text(text_of(head, false));
  // Clients of a stream send nothing: what can be read is its end.
  stream_.socket().async_wait(asio::ip::tcp::socket::wait_read,
                              [self = shared_from_this()](const error&) { self->close(); });
}

void http_connection::wake() {
  if (is_stream_ && !is_writing_) pump();
}

/// At most one piece is under way: a client that reads slowly costs its connection's memory, no more.
void http_connection::pump() {
  auto next = context_.events.after(last_event_, max_piece_bytes);
  last_event_ = next.last_id;
  if (next.text.empty()) return wait_for_events();
  send_text(std::move(next.text));
}

void http_connection::send_text(std::string text) {
  is_writing_ = true;
  heartbeat_.cancel();
  outgoing_ = std::move(text);
  stream_.expires_after(context_.options.write_timeout);
  asio::async_write(stream_, asio::buffer(outgoing_),
                    [self = shared_from_this()](const error& problem, std::size_t) {
                      self->is_writing_ = false;
                      if (problem) return self->close();
                      self->pump();
                    });
}

void http_connection::wait_for_events() {
  stream_.expires_never();
  heartbeat_.expires_after(context_.options.heartbeat);
  heartbeat_.async_wait([self = shared_from_this()](const error& problem) {
    if (!problem && !self->is_writing_ && self->stream_.socket().is_open()) self->send_text(": waiting\n\n");
  });
}

}  // namespace troupe::http
