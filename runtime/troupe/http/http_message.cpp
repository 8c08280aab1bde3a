#include "troupe/http/http_message.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace troupe::http {
namespace {

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/// A '%' without two digits after it stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t at = 0; at < text.size(); ++at) {
    int high = text[at] == '%' && at + 2 < text.size() ? hex_digit(text[at + 1]) : -1;
    int low = high >= 0 ? hex_digit(text[at + 2]) : -1;
    if (low < 0) {
      decoded += text[at] == '+' ? ' ' : text[at];
      continue;
    }
    decoded += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return decoded;
}

}  // namespace

std::string_view http_request::path() const { return std::string_view(target).substr(0, target.find('?')); }

std::optional<std::string> http_request::parameter(std::string_view name) const {
  auto begin = target.find('?');
  if (begin == std::string::npos) return {};
  auto rest = std::string_view(target).substr(begin + 1);
  while (!rest.empty()) {
    auto one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    auto equals = one.find('=');
    if (percent_decoded(one.substr(0, equals)) != name) continue;
    return equals == std::string_view::npos ? "" : percent_decoded(one.substr(equals + 1));
  }
  return {};
}

std::vector<std::string_view> http_request::values(std::string_view name) const {
  std::vector<std::string_view> found;
  for (const auto& [one, value] : headers)
    if (one == name) found.push_back(value);
  return found;
}

http_response refusal(int status, const std::string& text) {
  http_response response;
  response.status = status;
  response.body = text + "\n";
  return response;
}

std::optional<std::uint64_t> number_parameter(const http_request& request, std::string_view name,
                                              std::uint64_t otherwise, std::uint64_t least,
                                              std::uint64_t most) {
  auto text = request.parameter(name);
  if (!text) return otherwise;
  std::uint64_t value = 0;
  auto* end = text->data() + text->size();
  auto [stop, status] = std::from_chars(text->data(), end, value);
  if (status != std::errc() || stop != end || value < least || value > most) return {};
  return value;
}

}  // namespace troupe::http
