#include "support/schema.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

namespace troupe::testing {
namespace {

using json = nlohmann::json;

bool has_type(const json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  return type == "null" && value.is_null();
}

class checker {
 public:
  explicit checker(const json& schema) : schema_(schema) {}

  std::string check(const json& part, const json& value, const std::string& at) const {
    require_known_keywords(part);
    if (part.contains("$ref"))
      return check(schema_.at(json::json_pointer(part["$ref"].get<std::string>().substr(1))), value, at);
    if (part.contains("enum") && std::ranges::find(part["enum"], value) == part["enum"].end())
      return at + ": " + value.dump() + " is not one of " + part["enum"].dump();
    if (part.contains("type") && !has_any_type(part["type"], value))
      return at + ": " + value.dump() + " is not of type " + part["type"].dump();
    if (part.contains("minimum") && value.is_number() && value.get<double>() < part["minimum"].get<double>())
      return at + ": " + value.dump() + " is below the minimum";
    if (value.is_array()) return check_items(part, value, at);
    return value.is_object() ? check_properties(part, value, at) : "";
  }

 private:
  static void require_known_keywords(const json& part) {
    static const std::set<std::string> known = {
        "type",  "enum",     "properties", "required", "additionalProperties",
        "items", "maxItems", "minimum",    "$ref",     "description"};
    for (const auto& [keyword, ignored] : part.items())
      if (!known.contains(keyword))
        throw std::logic_error("[schema_problem] expected a known keyword, got " + keyword);
  }
  static bool has_any_type(const json& types, const json& value) {
    if (types.is_string()) return has_type(value, types);
    return std::ranges::any_of(types, [&](const json& type) { return has_type(value, type); });
  }
  std::string check_items(const json& part, const json& value, const std::string& at) const {
    if (part.contains("maxItems") && value.size() > part["maxItems"].get<std::size_t>())
      return at + ": too many items";
    for (std::size_t i = 0; part.contains("items") && i < value.size(); ++i)
      if (auto problem = check(part["items"], value[i], at + "/" + std::to_string(i)); !problem.empty())
        return problem;
    return {};
  }
  std::string check_properties(const json& part, const json& value, const std::string& at) const {
    for (const auto& name : part.value("required", json::array()))
      if (!value.contains(name.get<std::string>())) return at + ": " + name.dump() + " is missing";
    auto known = part.value("properties", json::object());
    for (const auto& [name, one] : value.items()) {
      if (!known.contains(name)) {
        if (part.value("additionalProperties", true)) continue;
        return at + ": '" + name + "' is not in the schema";
      }
      if (auto problem = check(known[name], one, at + "/" + name); !problem.empty()) return problem;
    }
    return {};
  }

  const json& schema_;
};

}  // namespace

std::string schema_problem(const json& schema, const std::string& name, const json& value) {
  return checker(schema).check(schema.at("$defs").at(name), value, name);
}

}  // namespace troupe::testing
