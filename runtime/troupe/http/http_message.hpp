#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::http {

/// A request as the server hands it to its handler. Nothing in it is decoded or trusted.
struct http_request {
  std::string method;  ///< "GET", as it came
  std::string target;  ///< path and query, as they came
  /// Names in lower case, in the order in which they came; one name may be there several times.
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  std::string caller = {};  ///< address and port of who sent it: "127.0.0.1:41873"

  /// The target up to its '?'.
  std::string_view path() const;
  /// The value of a query parameter, percent-decoded; none: it is not there. The first if there are several.
  std::optional<std::string> parameter(std::string_view name) const;
  /// All values of the header `name`, which is in lower case.
  std::vector<std::string_view> values(std::string_view name) const;
};

struct http_response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// The request has shown the server's token: its connection keeps its place among those that have not.
  bool is_to_trusted = false;
  /// Set: no body. The response is the server's stream of events after the one that has this id; 0: from the
  /// oldest that is kept on.
  std::optional<std::uint64_t> events_after = {};
};

/// A response that says in plain text why there is no other.
http_response refusal(int status, const std::string& text);

/// The integer parameter `name`, or `otherwise` if it is not there. None: it is no number from `least` to
/// `most`.
std::optional<std::uint64_t> number_parameter(const http_request& request, std::string_view name,
                                              std::uint64_t otherwise, std::uint64_t least,
                                              std::uint64_t most);

}  // namespace troupe::http
