#pragma once
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe::json_text {

/// Text that is no JSON, or JSON of another form than expected. What it says has none of the library's names.
class json_error : public std::runtime_error {
 public:
  explicit json_error(const std::string& problem) : std::runtime_error(problem) {}
  explicit json_error(const nlohmann::json::exception& problem);
};

/// The parsed text. Throws nlohmann::json::exception for no JSON, and json_error for values that nest deeper
/// than `deepest`: functions on the parsed value, its destructor included, recurse.
nlohmann::ordered_json parse_shallow(std::string_view text, int deepest);

/// What `read` makes of the parsed text. Throws json_error where the parser, or an access in `read`, throws
/// an exception of the library, and what `read` throws.
template <typename Read>
auto read_json(std::string_view text, int deepest, const Read& read) {
  try {
    return read(parse_shallow(text, deepest));
  } catch (const nlohmann::json::exception& problem) {
    throw json_error(problem);
  }
}

}  // namespace troupe::json_text
