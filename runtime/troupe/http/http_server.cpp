#include "troupe/http/http_server.hpp"

#include <fcntl.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <list>
#include <string>
#include <thread>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/http/http_connection.hpp"

namespace troupe::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

/// Where the process has no descriptor left, connections are accepted again after this.
constexpr auto accept_pause = std::chrono::milliseconds(200);

[[noreturn]] void refuse_to_listen(const listen_address& address, const error_code& problem) {
  std::string what_to_do = "Name another address";
  if (problem == asio::error::address_in_use)
    what_to_do = "Name another port, or none for one that is free";
  else if (problem == asio::error::access_denied)
    what_to_do = "Ports below 1024 are the system's: name another one, or none for one that is free";
  else if (problem.value() == EADDRNOTAVAIL)
    what_to_do = "This machine has no such address: name one of its own (see `ip address`)";
  throw bad_input("cannot listen on " + to_string(address) + ": " + problem.message() + ". " + what_to_do);
}

/// Signals go to the threads of the program, not to one started while this lives.
class blocked_signals {
 public:
  blocked_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~blocked_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

class http_server::state {
 public:
  state(const http_server_options& options, std::shared_ptr<event_log> events)
      : options_(options), events_(std::move(events)) {
    listen();
  }

  void serve(handler answer) {
    answer_ = std::move(answer);
    accept();
    events_->on_append([this] { wake_streams(); });
    blocked_signals blocked;
    thread_ = std::thread([this] {
      ::pthread_setname_np(::pthread_self(), "http_server");
      context_.run();
    });
  }

  ~state() {
    events_->on_append({});
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  const listen_address& address() const { return options_.address; }

 private:
  void listen() {
    error_code problem;
    tcp::endpoint endpoint(asio::ip::make_address(options_.address.address), options_.address.port);
    auto check = [&] {
      if (problem) refuse_to_listen(options_.address, problem);
    };
    acceptor_.open(endpoint.protocol(), problem);
    check();
    ::fcntl(acceptor_.native_handle(), F_SETFD, FD_CLOEXEC);
    acceptor_.set_option(tcp::acceptor::reuse_address(true), problem);
    check();
    acceptor_.bind(endpoint, problem);
    check();
    acceptor_.listen(asio::socket_base::max_listen_connections, problem);
    check();
    options_.address.port = acceptor_.local_endpoint().port();
  }

  void accept() {
    acceptor_.async_accept([this](const error_code& problem, tcp::socket socket) {
      if (problem) {
        again_.expires_after(accept_pause);
        return again_.async_wait([this](const error_code&) { accept(); });
      }
      add(std::move(socket));
      accept();
    });
  }

  void add(tcp::socket socket) {
    connections_.remove_if([](const auto& one) { return one.expired(); });
    if (!make_place()) return;
    error_code ignored;  // the system's own bound stays
    socket.set_option(asio::socket_base::send_buffer_size(options_.send_buffer_bytes), ignored);
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    auto made = std::make_shared<http_connection>(
        std::move(socket), http_connection_context{options_, answer_, *events_, num_streams_});
    connections_.push_back(made);
    made->begin();
  }

  using connection_list = std::list<std::weak_ptr<http_connection>>;

  /// False: the new connection has none. Connections without a token make place for each other, so that
  /// nobody without one takes the place of those that have it.
  bool make_place() {
    auto is_unauthenticated = [](const http_connection& one) { return !one.is_trusted(); };
    auto num_unauthenticated =
        static_cast<std::size_t>(std::ranges::count_if(connections_, [&](const auto& one) {
          auto connection = one.lock();
          return connection && is_unauthenticated(*connection);
        }));
    auto most_unauthenticated =
        options_.max_connections - std::min(options_.kept_connections, options_.max_connections / 2);
    if (connections_.size() < options_.max_connections && num_unauthenticated < most_unauthenticated)
      return true;
    return close_longest_waiting(is_unauthenticated) ||
           close_longest_waiting([](const http_connection& one) { return one.is_idle(); });
  }

  /// Of those that `may_be_closed`. False: there is none.
  template <class Condition>
  bool close_longest_waiting(Condition may_be_closed) {
    std::shared_ptr<http_connection> longest;
    for (const auto& one : connections_) {
      auto connection = one.lock();
      if (!connection || !may_be_closed(*connection)) continue;
      if (!longest || connection->waits_since() < longest->waits_since()) longest = connection;
    }
    if (!longest) return false;
    longest->close();
    connections_.remove_if([&](const auto& one) { return one.lock() == longest; });
    return true;
  }

  /// On any thread. Appends that come before the streams look are one wake-up.
  void wake_streams() {
    if (wakes_.exchange(true)) return;
    asio::post(context_, [this] {
      wakes_ = false;
      for (const auto& one : connections_)
        if (auto connection = one.lock()) connection->wake();
    });
  }

  // constant once it serves
  http_server_options options_;
  handler answer_;
  std::shared_ptr<event_log> events_;

  std::size_t num_streams_ = 0;
  connection_list connections_;
  std::atomic<bool> wakes_ = false;
  // Connections that it holds use what is above.
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  asio::steady_timer again_{context_};
  std::thread thread_;
};

http_server::http_server(const http_server_options& options, std::shared_ptr<event_log> events)
    : state_(std::make_unique<state>(options, std::move(events))) {}
http_server::~http_server() = default;

void http_server::serve(handler answer) { state_->serve(std::move(answer)); }
const listen_address& http_server::address() const { return state_->address(); }

}  // namespace troupe::http
