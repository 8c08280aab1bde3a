#include "troupe/posix/interface_address.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "troupe/error/errors.hpp"

namespace troupe {
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

}  // namespace

std::string address_of_interface(const std::string& interface) {
  ifaddrs* read = nullptr;
  check_posix(::getifaddrs(&read), "list the network interfaces");
  std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(read, ::freeifaddrs);
  std::string known, found;
  for (auto* entry = list.get(); entry; entry = entry->ifa_next) {
    auto host = host_of(entry->ifa_addr);
    if (host.empty()) continue;
    known.append(known.empty() ? "" : ", ").append(entry->ifa_name).append(" (").append(host).append(")");
    bool better =
        found.empty() || (found.find(':') != std::string::npos && host.find(':') == std::string::npos);
    if (interface == entry->ifa_name && better) found = host;
  }
  if (found.empty())
    throw bad_input("network interface '" + interface +
                    "' does not exist or has no address; there are: " + known);
  return found;
}

}  // namespace troupe
