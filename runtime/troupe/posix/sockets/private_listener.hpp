#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "troupe/posix/unique_fd.hpp"

namespace troupe::posix {

/// A listening Unix socket (SOCK_SEQPACKET, non-blocking) for processes of this user on this host.
///
/// It lies in a folder that no other user can enter, so that none can fill its queue of connections. An
/// abstract name would be open to all users of the network namespace. A path works for every process of the
/// user: what the kernel lets only a tracer do (/proc/PID/fd, pidfd_getfd) fails for processes that are not
/// dumpable, under Yama and where /proc hides processes.
///
/// Processes that see another /tmp cannot reach it: place() tells. Where no folder can be written the socket
/// has an abstract name after all: whoever accepts has to check who connects, and whoever connects to try
/// again.
class private_listener {
 public:
  /// The first of `folders` that can be used. Sockets of killed processes are removed there.
  explicit private_listener(const std::vector<std::filesystem::path>& folders = {"/tmp", "/dev/shm"});
  private_listener(const private_listener&) = delete;
  private_listener& operator=(const private_listener&) = delete;
  ~private_listener();

  /// For connect_privately() in other processes: a path, or @ and an abstract name.
  const std::string& address() const { return address_; }
  /// Equal for processes that reach each other's sockets, if they share the network namespace. Has no spaces.
  const std::string& place() const { return place_; }
  int fd() const { return socket_.get(); }

 private:
  bool listen_in(const std::filesystem::path& parent);
  void listen_at_abstract_name();

  unique_fd socket_;
  std::string address_;
  std::string place_;
};

/// A socket that has begun to connect to a private_listener. Does not block. Returns the socket, or nothing
/// while too many others wait to be accepted. Throws system_failure otherwise.
unique_fd connect_privately(const std::string& address);

}  // namespace troupe::posix
