#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/http/http_message.hpp"

namespace troupe::http {

/// Who may ask a server what.
struct access_policy {
  std::string token;        ///< `Authorization: Bearer TOKEN`
  std::string session;      ///< what the cookie of browsers holds: another secret than the token
  std::string cookie_name;  ///< distinct for each port, since cookies do not know ports
  /// Paths that a GET or HEAD gets without token: they tell nothing about the job.
  std::vector<std::string> public_paths = {};
  /// Names by which the server may be called besides localhost and IP addresses.
  std::vector<std::string> host_names = {};
};

/// The header that every request which changes something must have. A page of another origin cannot send it
/// unless the server allows it, which this one never does (no CORS).
constexpr const char* control_header = "x-troupe-request";

/// None: the request may be answered. Otherwise the response that says why not, and what to do.
///
///   Host      exactly one; localhost, an IP address or one of host_names, with any port. A page that had its
///             name resolved to this machine (DNS rebinding) has another one.
///   Origin    none, or the request's own host.
///   change    any method but GET and HEAD: needs control_header, and with a cookie also Origin.
///   token     as bearer, or its session in the cookie; a wrong bearer is refused whatever the cookie is.
///
/// Secrets are compared in constant time.
std::optional<http_response> check_access(const http_request& request, const access_policy& policy);

/// Whether the request shows the token or its session, which public paths do not need.
bool shows_token(const http_request& request, const access_policy& policy);

/// The value of Set-Cookie with which browsers show the session: HttpOnly, SameSite=Strict.
std::string session_cookie(const access_policy& policy);

/// Whether two secrets are the same, in a time that depends on their lengths only.
bool same_secret(std::string_view left, std::string_view right);

/// A token that a user provides must be 16 to 256 characters of those that a header can carry. Returns what
/// is wrong with it; empty: nothing.
std::string token_problem(std::string_view token);

}  // namespace troupe::http
