#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "troupe/posix/unique_fd.hpp"

namespace troupe {

/// A listening, non-blocking socket. Throws bad_input naming address and port if it cannot be made.
unique_fd listen_on(const std::string& address, std::uint16_t port);
/// The port a socket is bound to.
std::uint16_t local_port(const unique_fd& socket);
/// One attempt to connect, non-blocking afterwards. Returns the socket, or the errno of the attempt in
/// `error`. Throws bad_input for an address that does not exist.
unique_fd try_connect(const std::string& address, std::uint16_t port, std::chrono::milliseconds timeout,
                      int& error);
/// "127.0.0.1:29500"
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

}  // namespace troupe
