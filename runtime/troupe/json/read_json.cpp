#include "troupe/json/read_json.hpp"

namespace troupe::json_text {
namespace {

/// Without the "[json.exception.type_error.302] " in front.
std::string words_of(const nlohmann::json::exception& problem) {
  std::string_view words = problem.what();
  auto end = words.find("] ");
  if (words.starts_with("[json.exception.") && end != std::string_view::npos) words.remove_prefix(end + 2);
  return std::string(words);
}

}  // namespace

json_error::json_error(const nlohmann::json::exception& problem) : std::runtime_error(words_of(problem)) {}

nlohmann::ordered_json parse_shallow(std::string_view text, int deepest) {
  using json = nlohmann::ordered_json;
  return json::parse(text, [deepest](int depth, json::parse_event_t, json&) {
    if (depth > deepest) throw json_error("its JSON nests deeper than " + std::to_string(deepest));
    return true;
  });
}

}  // namespace troupe::json_text
