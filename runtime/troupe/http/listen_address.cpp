#include "troupe/http/listen_address.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <system_error>

#include "troupe/error/errors.hpp"

namespace troupe::http {
namespace {

[[noreturn]] void refuse_address(std::string_view text, const std::string& why) {
  throw bad_input("cannot listen on '" + std::string(text) + "': " + why +
                  ". Expected ADDRESS:PORT, such as 127.0.0.1:8080, or [::1]:8080, or one of both alone");
}

std::uint16_t port_from(std::string_view digits, std::string_view text) {
  unsigned port = 0;
  auto [stop, status] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (status != std::errc() || stop != digits.data() + digits.size() || port > 65535)
    refuse_address(text, "'" + std::string(digits) + "' is no port from 0 to 65535");
  return static_cast<std::uint16_t>(port);
}

std::string address_from(std::string_view address, std::string_view text) {
  if (address == "localhost") return "127.0.0.1";
  if (!is_ip_address(address))
    refuse_address(text, "'" + std::string(address) + "' is no IP address in numbers");
  return std::string(address);
}

bool is_v4(const char* text) {
  in_addr v4{};
  return ::inet_pton(AF_INET, text, &v4) == 1;
}

}  // namespace

bool is_ip_address(std::string_view text) {
  std::string copy(text);
  in6_addr v6{};
  return copy.size() == std::strlen(copy.c_str()) &&
         (is_v4(copy.c_str()) || ::inet_pton(AF_INET6, copy.c_str(), &v6) == 1);
}

bool listen_address::is_loopback() const {
  return address == "::1" || (address.starts_with("127.") && is_v4(address.c_str()));
}

listen_address listen_address_from(std::string_view text) {
  listen_address address;
  if (text.empty()) refuse_address(text, "it is empty");
  if (std::ranges::all_of(text, [](char one) { return one >= '0' && one <= '9'; })) {
    address.port = port_from(text, text);
    return address;
  }
  if (text.front() == '[') {
    auto end = text.find(']');
    if (end == std::string_view::npos) refuse_address(text, "']' is missing");
    address.address = address_from(text.substr(1, end - 1), text);
    auto rest = text.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') refuse_address(text, "':' is missing after ']'");
    if (!rest.empty()) address.port = port_from(rest.substr(1), text);
    return address;
  }
  auto colon = text.find(':');
  bool has_port = colon != std::string_view::npos && colon == text.rfind(':');
  address.address = address_from(has_port ? text.substr(0, colon) : text, text);
  if (has_port) address.port = port_from(text.substr(colon + 1), text);
  return address;
}

std::string to_string(const listen_address& shown) {
  bool is_v6 = shown.address.find(':') != std::string::npos;
  return (is_v6 ? "[" + shown.address + "]" : shown.address) + ":" + std::to_string(shown.port);
}

}  // namespace troupe::http
