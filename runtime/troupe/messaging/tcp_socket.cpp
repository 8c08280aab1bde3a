#include "troupe/messaging/tcp_socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "troupe/error/errors.hpp"

namespace troupe::messaging {
namespace {

using address_list = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// "::1" of "[::1]".
std::string without_brackets(const std::string& address) {
  bool has_brackets = address.size() > 2 && address.front() == '[' && address.back() == ']';
  return has_brackets ? address.substr(1, address.size() - 2) : address;
}

/// Why `address` can never be a host's name or an address, so that waiting for one does not help; empty if it
/// can.
std::string syntax_problem(const std::string& address) {
  auto holds_only = [&](std::string_view allowed) {
    return address.find_first_not_of(allowed) == address.npos;
  };
  if (address.find("//") != address.npos)
    return "it is a URL: give what stands between '//' and the port or path";
  if (address.find_first_of(" \t\r\n/,;'\"") != address.npos)
    return "a name has no spaces, commas, quotes and '/'";
  if (holds_only("0123456789.") && address.find('.') != address.npos)
    return "an IPv4 address has four numbers from 0 to 255";
  if (std::ranges::count(address, ':') == 1)
    return "a port is no part of it: that is MASTER_PORT, or --master-port of the launcher";
  return {};
}

address_list resolve(const std::string& address, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (int problem =
          ::getaddrinfo(without_brackets(address).c_str(), std::to_string(port).c_str(), &hints, &found);
      problem != 0) {
    auto problem_of_text = syntax_problem(address);
    if (!problem_of_text.empty())
      throw bad_input("the address '" + address + "' cannot be used: " + problem_of_text +
                      ". Give a host name or an IP address (--master-addr, MASTER_ADDR)");
    throw unknown_address("the address '" + address + "' cannot be used: " + ::gai_strerror(problem) +
                          ". Give a host name or an IP address (--master-addr, MASTER_ADDR)");
  }
  return {found, &::freeaddrinfo};
}

bool is_in_numbers(const std::string& address) {
  try {
    resolve(address, 0, AI_NUMERICHOST);
    return true;
  } catch (const bad_input&) {
    return false;
  }
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> 24 == 127;
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

bool is_loopback(const addrinfo& first) {
  for (const auto* each = &first; each; each = each->ai_next)
    if (!is_loopback(*each->ai_addr)) return false;
  return true;
}

/// "10.0.0.1, fd00::1"
std::string in_numbers(const addrinfo& first) {
  std::string text;
  for (const auto* each = &first; each; each = each->ai_next) {
    char host[NI_MAXHOST] = "";
    ::getnameinfo(each->ai_addr, each->ai_addrlen, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    text += (text.empty() ? "" : ", ") + std::string(host);
  }
  return text;
}

posix::unique_fd make_socket(const addrinfo& where) {
  return posix::unique_fd(static_cast<int>(check_posix(
      ::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "make a socket")));
}

/// Connecting to an ephemeral port without listener may connect the socket to itself (TCP simultaneous open).
bool connected_to_itself(int fd) {
  sockaddr_storage mine{}, theirs{};
  socklen_t my_size = sizeof mine, their_size = sizeof theirs;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &my_size) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &their_size) == 0 && my_size == their_size &&
         std::memcmp(&mine, &theirs, my_size) == 0;
}

int connect_error(int fd, const addrinfo& where, std::chrono::milliseconds timeout) {
  if (::connect(fd, where.ai_addr, where.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  if (!wait_for(fd, POLLOUT, timeout)) return ETIMEDOUT;
  int problem = 0;
  socklen_t size = sizeof problem;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &size);
  return problem;
}

[[noreturn]] void refuse_listening(const std::string& address, std::uint16_t port, int problem) {
  auto what = "cannot listen on " + endpoint_name(address, port) + ": " + std::strerror(problem) + ". ";
  if (problem == EADDRINUSE)
    throw bad_input(what +
                    "Another program or job has this port: end it, or choose another port: "
                    "`troupe launch --master-port` (0: any free one), or MASTER_PORT of a program that is "
                    "started by hand");
  if (problem == EADDRNOTAVAIL && is_only_loopback(address))
    throw bad_input(what +
                    "The network device lo of this host or container is down: bring it up with `ip link "
                    "set lo up`");
  throw bad_input(what +
                  "Choose an address of this host (--master-addr) and a port you may use (--master-port)");
}

/// Returns no socket, and why in `problem`, if it cannot listen there.
posix::unique_fd try_listening(const addrinfo& where, int& problem) {
  posix::unique_fd made(::socket(where.ai_family, where.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int on = 1;
  if (made) ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (made && ::bind(made.get(), where.ai_addr, where.ai_addrlen) == 0 &&
      ::listen(made.get(), SOMAXCONN) == 0)
    return made;
  problem = errno;
  return {};
}

void set_port(sockaddr& address, std::uint16_t port) {
  if (address.sa_family == AF_INET) reinterpret_cast<sockaddr_in&>(address).sin_port = htons(port);
  if (address.sa_family == AF_INET6) reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(port);
}

/// At those of the addresses that this host has. With port 0 all get the port that the first one gets.
std::vector<posix::unique_fd> listen_where_possible(addrinfo& first, std::uint16_t port, int& problem) {
  std::vector<posix::unique_fd> made;
  for (auto* where = &first; where; where = where->ai_next) {
    if (port == 0 && !made.empty()) set_port(*where->ai_addr, local_port(made.front()));
    int why = 0;
    if (auto socket = try_listening(*where, why))
      made.push_back(std::move(socket));
    else if (problem == 0 || why == EADDRINUSE)
      problem = why;
    if (port != 0 && why == EADDRINUSE) return {};  // members might reach another job there
  }
  return made;
}

/// IPv6's socket takes IPv4 too; hosts without IPv6 have the other one only.
posix::unique_fd listen_everywhere(std::uint16_t port, int& problem) {
  for (const char* all : {"::", "0.0.0.0"})
    if (auto made = try_listening(*resolve(all, port, AI_PASSIVE | AI_NUMERICHOST), problem)) return made;
  return {};
}

bool is_localhost(const std::string& name) { return name == "localhost" || name.ends_with(".localhost"); }

}  // namespace

posix::unique_fd listen_on(const std::string& address, std::uint16_t port) {
  return std::move(listen_on_all(address, port, listening_for::this_host).sockets.front());
}

listening listen_on_all(const std::string& address, std::uint16_t port, listening_for who) {
  auto where = resolve(address, port, AI_PASSIVE);
  listening made;
  int problem = 0;
  bool may_differ = who == listening_for::whole_network && !is_in_numbers(address) && !is_localhost(address);
  bool is_local_name = may_differ && is_loopback(*where);
  if (!is_local_name) made.sockets = listen_where_possible(*where, port, problem);
  bool is_foreign = who == listening_for::whole_network && made.sockets.empty() && problem == EADDRNOTAVAIL;
  if (is_local_name || is_foreign) {
    made.note =
        "'" + address + "' is " + in_numbers(*where) + " here, " +
        (is_local_name ? "which other hosts cannot reach" : "which is no address of this host") +
        ": the job is reached at all addresses of this host. To restrict it, set MASTER_ADDR to the one "
        "that the others reach";
    if (auto socket = listen_everywhere(port, problem)) made.sockets.push_back(std::move(socket));
  }
  if (made.sockets.empty()) refuse_listening(address, port, problem);
  made.port = local_port(made.sockets.front());
  return made;
}

std::string still_unknown(const unknown_address& name) {
  return std::string(name.what()) + ". It may get an address later: trying again until --join-timeout";
}

bool is_only_loopback(const std::string& address) {
  try {
    return is_loopback(*resolve(address, 0, 0));
  } catch (const unknown_address&) {
    return true;
  }
}

std::uint16_t local_port(const posix::unique_fd& socket) {
  sockaddr_storage mine{};
  socklen_t size = sizeof mine;
  check_posix(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&mine), &size),
              "read a socket's address");
  if (mine.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6&>(mine).sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in&>(mine).sin_port);
}

posix::unique_fd try_connect(const std::string& address, std::uint16_t port,
                             std::chrono::milliseconds timeout, int& error) {
  auto list = resolve(address, port, 0);
  for (auto* where = list.get(); where; where = where->ai_next) {
    auto made = make_socket(*where);
    error = connect_error(made.get(), *where, timeout);
    if (error == 0 && connected_to_itself(made.get())) error = ECONNREFUSED;
    if (error != 0) continue;
    int on = 1;
    ::setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
  }
  return {};
}

std::string endpoint_name(const std::string& address, std::uint16_t port) {
  bool is_ipv6 = address.find(':') != address.npos && address.front() != '[';
  return (is_ipv6 ? '[' + address + ']' : address) + ':' + std::to_string(port);
}

io_result read_available(int fd, std::vector<std::byte>& to, std::size_t limit_bytes) {
  std::array<std::byte, 16384> chunk;
  for (std::size_t total = 0; total < limit_bytes;) {
    auto got = ::recv(fd, chunk.data(), std::min(chunk.size(), limit_bytes - total), 0);
    if (got > 0) {
      to.insert(to.end(), chunk.begin(), chunk.begin() + got);
      total += got;
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? io_result::open : io_result::closed;
    }
  }
  return io_result::open;
}

io_result write_available(int fd, std::vector<std::byte>& from) {
  std::size_t done = 0;
  auto result = io_result::open;
  while (done < from.size()) {
    auto wrote = ::send(fd, from.data() + done, from.size() - done, MSG_NOSIGNAL);
    if (wrote > 0) {
      done += wrote;
    } else if (wrote < 0 && errno == EINTR) {
      continue;
    } else {
      if (errno != EAGAIN && errno != EWOULDBLOCK) result = io_result::closed;
      break;
    }
  }
  from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(done));
  return result;
}

bool wait_for(int fd, short events, std::chrono::milliseconds timeout) {
  auto until = std::chrono::steady_clock::now() + timeout;
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd polled{fd, events, 0};
    int ready = ::poll(&polled, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace troupe::messaging
