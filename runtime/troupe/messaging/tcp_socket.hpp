#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "troupe/error/errors.hpp"
#include "troupe/posix/unique_fd.hpp"

namespace troupe::messaging {

/// A name that has no address now, or text that is no address.
class unknown_address : public bad_input {
 public:
  using bad_input::bad_input;
};

/// For a process that tries again: containers and services get their names some time after they have started.
std::string still_unknown(const unknown_address& name);
/// Between two look-ups, which ask servers.
constexpr std::chrono::milliseconds between_lookups{500};

/// A listening, non-blocking socket at the first address of this host that `address` has. Throws bad_input
/// naming address and port if it cannot be made, unknown_address if there is no such address.
posix::unique_fd listen_on(const std::string& address, std::uint16_t port);
/// Sockets at all of them.
struct listening {
  std::vector<posix::unique_fd> sockets;
  std::uint16_t port = 0;
  /// What was done otherwise than asked; empty: nothing.
  std::string note;
};
/// The sockets at which a job's members reach the agent. With `whole_network` a name may have another address
/// on this host than on others. If it is a name of this host's loopback device, or has only addresses that
/// are not this host's (a service's, a forwarded one), all addresses of this host are listened on. Throws as
/// listen_on().
enum class listening_for { this_host, whole_network };
listening listen_on_all(const std::string& address, std::uint16_t port, listening_for who);
/// Whether all that the address is now are loopback addresses; true of a name without an address.
bool is_only_loopback(const std::string& address);
/// The port a socket is bound to.
std::uint16_t local_port(const posix::unique_fd& socket);
/// One attempt to connect, non-blocking afterwards. Returns the socket, or the errno of the attempt in
/// `error`. Throws unknown_address if there is no such address.
posix::unique_fd try_connect(const std::string& address, std::uint16_t port,
                             std::chrono::milliseconds timeout, int& error);
/// "127.0.0.1:29500", "[::1]:29500"
std::string endpoint_name(const std::string& address, std::uint16_t port);

/// The result of one round of non-blocking reading or writing.
enum class io_result { open, closed };
/// Appends up to `limit_bytes` of what has arrived. Closed: the peer has ended its side or the connection
/// broke.
io_result read_available(int fd, std::vector<std::byte>& to, std::size_t limit_bytes);
/// Writes what fits and removes it from `from`.
io_result write_available(int fd, std::vector<std::byte>& from);
/// Waits until `fd` has one of `events` (POLLIN, POLLOUT). False: not within `timeout`.
bool wait_for(int fd, short events, std::chrono::milliseconds timeout);

}  // namespace troupe::messaging
