#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace troupe::testing {

/// What is wrong with `value` by the part `#/$defs/NAME` of a JSON schema, with the place; empty: nothing.
/// Knows the keywords type, enum, properties, required, additionalProperties, items, maxItems, minimum and
/// $ref, and throws for any other that says something about values.
std::string schema_problem(const nlohmann::json& schema, const std::string& name,
                           const nlohmann::json& value);

}  // namespace troupe::testing
