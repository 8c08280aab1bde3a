#include "troupe/http/http_client.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

namespace troupe::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

http_failure failure_of(const http_client_options& options, const beast::system_error& problem) {
  auto why = problem.code() == beast::error::timeout
                 ? "no answer within " + std::to_string(options.timeout.count()) + " ms"
                 : problem.code().message();
  return http_failure(options.host + ":" + std::to_string(options.port) + ": " + why);
}

}  // namespace

/// Throws boost::system::system_error.
class http_client::connection {
 public:
  explicit connection(const http_client_options& options) : options_(options), stream_(io_) {
    auto found = asio::ip::tcp::resolver(io_).resolve(options_.host, std::to_string(options_.port));
    stream_.expires_after(options_.timeout);
    complete([&](auto done) { stream_.async_connect(found, done); });
  }

  http_answer ask(http::verb method, const std::string& target, const std::vector<header>& headers,
                  const std::string& body = {}) {
    http::request<http::string_body> request(method, target, 11, body);
    auto is_v6 = options_.host.find(':') != std::string::npos;
    request.set(http::field::host,
                (is_v6 ? "[" + options_.host + "]" : options_.host) + ":" + std::to_string(options_.port));
    for (const auto& [name, value] : headers) request.set(name, value);
    request.prepare_payload();
    stream_.expires_after(options_.timeout);
    complete([&](auto done) { http::async_write(stream_, request, done); });
    http::response_parser<http::string_body> parser;
    parser.body_limit(options_.max_body_bytes);
    complete([&](auto done) { http::async_read(stream_, buffer_, parser, done); });
    is_open_ = parser.get().keep_alive();
    return {static_cast<int>(parser.get().result_int()), std::move(parser.get().body())};
  }

  bool is_open() const { return is_open_; }

 private:
  /// Runs one asynchronous operation to its end, which the stream's time limit bounds.
  template <class Start>
  void complete(const Start& start) {
    beast::error_code outcome;
    start([&outcome](beast::error_code error, auto&&...) { outcome = error; });
    io_.restart();
    io_.run();
    if (outcome) throw beast::system_error(outcome);
  }

  const http_client_options& options_;
  asio::io_context io_{1};
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  bool is_open_ = true;
};

http_client::http_client(http_client_options options) : options_(std::move(options)) {}

http_client::~http_client() = default;

http_answer http_client::get(const std::string& target, const std::vector<header>& headers) {
  try {
    // The server may have closed a connection that was idle.
    if (connection_ && connection_->is_open()) {
      try {
        return connection_->ask(http::verb::get, target, headers);
      } catch (const beast::system_error& problem) {
        if (problem.code() == beast::error::timeout) throw;
      }
    }
    connection_.reset();
    connection_ = std::make_unique<connection>(options_);
    return connection_->ask(http::verb::get, target, headers);
  } catch (const beast::system_error& problem) {
    connection_.reset();
    throw failure_of(options_, problem);
  }
}

http_answer http_client::post(const std::string& target, const std::string& body,
                              const std::vector<header>& headers) {
  try {
    return connection(options_).ask(http::verb::post, target, headers, body);
  } catch (const beast::system_error& problem) {
    throw failure_of(options_, problem);
  }
}

}  // namespace troupe::http
