#include "troupe/cluster/tcp_socket.hpp"

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

#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using address_list = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

address_list resolve(const std::string& address, std::uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (int problem = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found);
      problem != 0)
    throw bad_input("the address '" + address + "' cannot be used: " + ::gai_strerror(problem) +
                    ". Give a host name or an IP address (--master-addr, MASTER_ADDR)");
  return {found, &::freeaddrinfo};
}

unique_fd make_socket(const addrinfo& where) {
  return unique_fd(static_cast<int>(check_posix(
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

}  // namespace

unique_fd listen_on(const std::string& address, std::uint16_t port) {
  auto where = resolve(address, port, AI_PASSIVE);
  auto made = make_socket(*where);
  int on = 1;
  ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(made.get(), where->ai_addr, where->ai_addrlen) == 0 && ::listen(made.get(), SOMAXCONN) == 0)
    return made;
  auto problem = errno;
  auto what = "cannot listen on " + endpoint_name(address, port) + ": " + std::strerror(problem) + ". ";
  if (problem == EADDRINUSE)
    throw bad_input(what +
                    "Another program or job has this port: end it, or choose another port: "
                    "`troupe launch --master-port` (0: any free one), or MASTER_PORT of a program that is "
                    "started by hand");
  throw bad_input(what +
                  "Choose an address of this host (--master-addr) and a port you may use (--master-port)");
}

std::uint16_t local_port(const unique_fd& socket) {
  sockaddr_storage mine{};
  socklen_t size = sizeof mine;
  check_posix(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&mine), &size),
              "read a socket's address");
  if (mine.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6&>(mine).sin6_port);
  return ntohs(reinterpret_cast<sockaddr_in&>(mine).sin_port);
}

unique_fd try_connect(const std::string& address, std::uint16_t port, std::chrono::milliseconds timeout,
                      int& error) {
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
  return address + ":" + std::to_string(port);
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

}  // namespace troupe
