#include "troupe/posix/sockets/interface_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <map>
#include <memory>

#include "troupe/error/errors.hpp"

namespace troupe::posix {
namespace {

/// The address in numbers. Empty for addresses that cannot be used: other families, and IPv6 addresses that
/// are valid only together with an interface.
std::string host_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address && address->sa_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, address, sizeof(v4));
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
  } else if (address && address->sa_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, address, sizeof(v6));
    if (!IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  }
  return text;
}

/// By name of the interface; an empty address where it has none that can be used.
struct found_interface {
  bool is_up = false;
  std::string host;
};

std::map<std::string, found_interface> read_interfaces() {
  ifaddrs* read = nullptr;
  check_posix(::getifaddrs(&read), "list the network interfaces");
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(read, ::freeifaddrs);
  std::map<std::string, found_interface> interfaces;
  for (auto* entry = list.get(); entry; entry = entry->ifa_next) {
    auto& known = interfaces[entry->ifa_name];
    known.is_up |= (entry->ifa_flags & IFF_UP) != 0;
    auto host = host_of(entry->ifa_addr);
    bool is_better = known.host.empty() ||
                     (known.host.find(':') != std::string::npos && host.find(':') == std::string::npos);
    if (!host.empty() && is_better) known.host = host;
  }
  return interfaces;
}

[[noreturn]] void refuse(const std::string& interface, const std::map<std::string, found_interface>& all) {
  auto what = "network interface '" + interface + "' ";
  if (auto known = all.find(interface); known != all.end()) {
    if (!known->second.is_up)
      throw bad_input(what + "is down: bring it up with `ip link set " + interface +
                      " up`, or name another one");
    throw bad_input(what +
                    "has no IPv4 address and no IPv6 address that is valid outside it: give it one, or name "
                    "another one");
  }
  std::string names;
  for (const auto& [name, found] : all)
    names += (names.empty() ? "" : ", ") + name + " (" +
             (!found.is_up         ? "down"
              : found.host.empty() ? "no address"
                                   : found.host) +
             ')';
  throw bad_input(what + "does not exist; there " + (names.empty() ? "is none" : "are: " + names));
}

}  // namespace

std::string address_of_interface(const std::string& interface) {
  auto interfaces = read_interfaces();
  auto found = interfaces.find(interface);
  if (found == interfaces.end() || !found->second.is_up || found->second.host.empty())
    refuse(interface, interfaces);
  return found->second.host;
}

}  // namespace troupe::posix
