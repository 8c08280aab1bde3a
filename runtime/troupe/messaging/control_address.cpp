#include "troupe/messaging/control_address.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <sys/socket.h>

#include <cereal/types/array.hpp>
#include <cerrno>
#include <cstring>

#include "troupe/error/errors.hpp"
#include "troupe/posix/sockets/interface_address.hpp"
#include "troupe/wire/codec.hpp"

namespace troupe::messaging {
namespace {

/// An IPv4 or IPv6 address in the form of the socket calls.
struct socket_address {
  sockaddr_storage bytes{};
  socklen_t length = 0;
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&bytes); }
};

socket_address to_socket_address(const std::string& host, std::uint16_t port) {
  socket_address result;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    std::memcpy(&result.bytes, &v4, result.length = sizeof(v4));
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    std::memcpy(&result.bytes, &v6, result.length = sizeof(v6));
  } else {
    throw_invalid("control address", "an IP address in numbers", "'" + host + "'");
  }
  return result;
}

std::uint16_t port_of(const socket_address& address) {
  if (address.bytes.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address.bytes, sizeof(v4));
    return ntohs(v4.sin_port);
  }
  sockaddr_in6 v6;
  std::memcpy(&v6, &address.bytes, sizeof(v6));
  return ntohs(v6.sin6_port);
}

posix::unique_fd make_socket(int family) {
  auto number = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  return posix::unique_fd(static_cast<int>(check_posix(number, "make a socket")));
}

process_id random_process_id() {
  if (sodium_init() < 0) throw std::runtime_error("libsodium cannot be initialised");
  process_id id;
  randombytes_buf(id.data(), id.size());
  return id;
}

}  // namespace

template <class Archive>
void serialize(Archive& archive, control_address& address) {
  archive(address.host, address.port, address.process);
}

std::vector<std::byte> encode_control_address(const control_address& address) {
  return wire::encode(address);
}

control_address decode_control_address(const std::vector<std::byte>& bytes) {
  return wire::decode<control_address>(bytes);
}

control_listener listen_on(const std::string& interface) {
  auto host = posix::address_of_interface(interface);
  auto address = to_socket_address(host, 0);
  auto socket = make_socket(address.bytes.ss_family);
  auto action = "listen on " + host;
  check_posix(::bind(socket.get(), address.raw(), address.length), action);
  check_posix(::listen(socket.get(), SOMAXCONN), action);
  check_posix(::getsockname(socket.get(), address.raw(), &address.length), action);
  return {std::move(socket), {host, port_of(address), random_process_id()}};
}

posix::unique_fd connect_to(const control_address& peer) {
  auto address = to_socket_address(peer.host, peer.port);
  auto socket = make_socket(address.bytes.ss_family);
  int one = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  int result = ::connect(socket.get(), address.raw(), address.length);
  if (result < 0 && errno != EINPROGRESS) check_posix(result, "connect to " + peer.host);
  return socket;
}

}  // namespace troupe::messaging
