#include "troupe/posix/sockets/private_listener.hpp"

#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/private_folder.hpp"

namespace troupe::posix {
namespace {

constexpr std::string_view prefix = "groups-";

struct socket_name {
  sockaddr_un name{};
  socklen_t size = 0;
  /// `@`: the zero byte that makes a name abstract, so that it is in no folder.
  explicit socket_name(const std::string& address) {
    if (address.empty() || address.size() >= sizeof name.sun_path)
      throw_invalid("socket", "an address of 1 to 107 bytes", std::to_string(address.size()));
    name.sun_family = AF_UNIX;
    address.copy(name.sun_path, address.size());
    bool is_abstract = address.front() == '@';
    if (is_abstract) name.sun_path[0] = 0;
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size() + (is_abstract ? 0 : 1));
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

unique_fd packet_socket() {
  return unique_fd(static_cast<int>(
      check_posix(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "make a socket")));
}

/// 0 or errno.
int connect_to(const std::string& address, const unique_fd& from) {
  socket_name its(address);
  return ::connect(from.get(), its.get(), its.size) == 0 ? 0 : errno;
}

std::string random_name() {
  std::uint64_t bits = 0;
  check_posix(::getrandom(&bits, sizeof bits, 0), "get random bytes");
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%d-%016llx", static_cast<int>(::getpid()),
                static_cast<unsigned long long>(bits));
  return text.data();
}

/// The process that made the socket, as far as this PID namespace knows.
bool may_live(std::string_view name) {
  int pid = 0;
  name.remove_prefix(prefix.size());
  std::from_chars(name.data(), name.data() + name.size(), pid);
  return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
}

/// Sockets whose processes were killed: nobody listens there.
void remove_abandoned(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (std::filesystem::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    auto name = entry->path().filename().string();
    if (!name.starts_with(prefix) || may_live(name)) continue;
    if (connect_to(entry->path().string(), packet_socket()) == ECONNREFUSED) ::unlink(entry->path().c_str());
  }
}

}  // namespace

private_listener::private_listener(const std::vector<std::filesystem::path>& folders) {
  for (const auto& folder : folders)
    if (listen_in(folder)) return;
  listen_at_abstract_name();
}

private_listener::~private_listener() {
  if (!address_.starts_with('@')) ::unlink(address_.c_str());
}

bool private_listener::listen_in(const std::filesystem::path& parent) {
  struct stat found {};
  if (::stat(parent.c_str(), &found) != 0) return false;
  auto folder = private_folder_in(parent).path;
  if (folder.empty()) return false;
  remove_abandoned(folder);
  auto final_name = (folder / (std::string(prefix) + random_name())).string();
  // The socket gets its name when it listens, so that nobody takes it for an abandoned one.
  socket_name first(final_name + ".new");
  socket_ = packet_socket();
  if (::bind(socket_.get(), first.get(), first.size) != 0) return false;
  // Connecting needs write permission, which the umask may have taken.
  if (::chmod(first.name.sun_path, 0600) != 0 || ::listen(socket_.get(), SOMAXCONN) != 0 ||
      ::rename(first.name.sun_path, final_name.c_str()) != 0) {
    ::unlink(first.name.sun_path);
    return false;
  }
  address_ = final_name;
  place_ = parent.string() + ':' + std::to_string(found.st_dev) + ':' + std::to_string(found.st_ino);
  return true;
}

void private_listener::listen_at_abstract_name() {
  address_ = "@troupe-" + random_name();
  place_ = "@";
  socket_ = packet_socket();
  socket_name own(address_);
  check_posix(::bind(socket_.get(), own.get(), own.size), "bind the socket " + address_);
  check_posix(::listen(socket_.get(), SOMAXCONN), "listen on the socket " + address_);
}

unique_fd connect_privately(const std::string& address) {
  auto made = packet_socket();
  auto problem = connect_to(address, made);
  if (problem == 0) return made;
  if (problem == EAGAIN) return {};
  throw system_failure("connect to " + address, problem);
}

}  // namespace troupe::posix
