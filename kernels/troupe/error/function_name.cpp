#include "troupe/error/function_name.hpp"

#include <cstddef>

namespace troupe {
namespace {

constexpr std::string_view anonymous = "(anonymous namespace)";

/// Where the arguments begin: the first bracket outside of template arguments that begins no name.
std::size_t arguments_at(std::string_view signature) {
  int depth = 0;
  for (std::size_t at = 0; at < signature.size(); ++at) {
    if (signature[at] == '<') ++depth;
    if (signature[at] == '>') --depth;
    if (signature[at] != '(' || depth > 0) continue;
    if (signature.substr(at).starts_with(anonymous))
      at += anonymous.size() - 1;
    else if (!signature.substr(0, at).ends_with("operator"))
      return at;
  }
  return signature.size();
}

}  // namespace

std::string_view short_function_name(std::string_view signature) {
  auto name = signature.substr(0, arguments_at(signature));
  // The name begins behind its namespace or the type of the result.
  int depth = 0;
  for (auto at = name.size(); at > 0; --at) {
    auto letter = name[at - 1];
    if (letter == '>') ++depth;
    if (letter == '<') --depth;
    if (depth == 0 && (letter == ':' || letter == ' ' || letter == '*' || letter == '&'))
      return name.substr(at);
  }
  return name;
}

std::string short_function_name(const std::source_location& where) {
  return std::string(short_function_name(std::string_view(where.function_name())));
}

}  // namespace troupe
