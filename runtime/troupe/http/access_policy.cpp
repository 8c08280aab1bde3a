#include "troupe/http/access_policy.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "troupe/http/listen_address.hpp"

namespace troupe::http {
namespace {

constexpr std::size_t shortest_token = 16, longest_token = 256;

/// "localhost:8080" -> "localhost", "[::1]:8080" -> "::1"; empty: it is no host.
std::string_view host_without_port(std::string_view host) {
  auto is_port = [](std::string_view text) {
    return text.empty() ||
           (text.size() <= 6 && text.front() == ':' &&
            std::all_of(text.begin() + 1, text.end(), [](char one) { return one >= '0' && one <= '9'; }));
  };
  if (host.starts_with('[')) {
    auto end = host.find(']');
    if (end == std::string_view::npos || !is_port(host.substr(end + 1))) return {};
    return host.substr(1, end - 1);
  }
  auto colon = std::min(host.find(':'), host.size());
  return is_port(host.substr(colon)) ? host.substr(0, colon) : std::string_view();
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](char one) {
    return one >= 'A' && one <= 'Z' ? static_cast<char>(one + 32) : one;
  });
  return lower;
}

bool is_own_host(std::string_view host, const access_policy& policy) {
  auto name = in_lower_case(host_without_port(host));
  return name == "localhost" || is_ip_address(name) ||
         std::ranges::find(policy.host_names, name) != policy.host_names.end();
}

/// The value of the policy's cookie; none: it is not there, or there twice.
std::optional<std::string_view> cookie_of(const http_request& request, const access_policy& policy) {
  std::optional<std::string_view> found;
  for (auto all : request.values("cookie"))
    while (!all.empty()) {
      auto one = all.substr(0, all.find(';'));
      all.remove_prefix(std::min(all.size(), one.size() + 1));
      one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
      auto equals = one.find('=');
      if (equals == std::string_view::npos || one.substr(0, equals) != policy.cookie_name) continue;
      if (found) return {};
      found = one.substr(equals + 1);
    }
  return found;
}

http_response unauthorized(const std::string& text) {
  auto response = refusal(401, text);
  response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

/// `by_cookie`: set where the cookie says who asks.
std::optional<http_response> check_token(const http_request& request, const access_policy& policy,
                                         bool& by_cookie) {
  auto given = request.values("authorization");
  if (given.size() > 1) return refusal(400, "expected one Authorization header, got several");
  if (!given.empty()) {
    constexpr std::string_view scheme = "bearer ";
    bool is_bearer =
        given[0].size() > scheme.size() && in_lower_case(given[0].substr(0, scheme.size())) == scheme;
    if (is_bearer && same_secret(given[0].substr(scheme.size()), policy.token)) return {};
    return unauthorized("the token is not this job's. It is in the URL that the job's start printed");
  }
  auto cookie = cookie_of(request, policy);
  by_cookie = cookie.has_value();
  if (cookie && same_secret(*cookie, policy.session)) return {};
  return unauthorized(
      "a token is needed: send the header 'Authorization: Bearer TOKEN' with the token in the URL that the "
      "job's start printed");
}

}  // namespace

std::optional<http_response> check_access(const http_request& request, const access_policy& policy) {
  auto hosts = request.values("host");
  if (hosts.size() != 1) return refusal(400, "expected one Host header, got " + std::to_string(hosts.size()));
  if (!is_own_host(hosts[0], policy))
    return refusal(403, "the Host header must be localhost or an IP address of this machine");
  auto origins = request.values("origin");
  for (auto origin : origins)
    if (in_lower_case(origin) != "http://" + in_lower_case(hosts[0]))
      return refusal(403, "requests of pages of other origins are refused");
  bool reads = request.method == "GET" || request.method == "HEAD";
  if (!reads && request.values(control_header).size() != 1)
    return refusal(403,
                   std::string("requests that change something need the header '") + control_header + ": 1'");
  auto is_public = [&](const std::string& path) { return request.path() == path; };
  if (reads && std::ranges::any_of(policy.public_paths, is_public)) return {};
  bool by_cookie = false;
  if (auto refused = check_token(request, policy, by_cookie)) return refused;
  if (!reads && by_cookie && origins.empty())
    return refusal(403, "requests of browsers that change something need an Origin header");
  return {};
}

bool shows_token(const http_request& request, const access_policy& policy) {
  bool by_cookie = false;
  return !check_token(request, policy, by_cookie);
}

std::string session_cookie(const access_policy& policy) {
  return policy.cookie_name + "=" + policy.session + "; Path=/; HttpOnly; SameSite=Strict";
}

bool same_secret(std::string_view left, std::string_view right) {
  return left.size() == right.size() && !left.empty() &&
         ::sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

std::string token_problem(std::string_view token) {
  if (token.size() < shortest_token || token.size() > longest_token)
    return "expected " + std::to_string(shortest_token) + " to " + std::to_string(longest_token) +
           " characters, got " + std::to_string(token.size());
  auto is_allowed = [](char one) {
    return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
           one == '-' || one == '_' || one == '.' || one == '~';
  };
  if (!std::ranges::all_of(token, is_allowed)) return "expected letters, digits and -._~ only";
  return {};
}

}  // namespace troupe::http
