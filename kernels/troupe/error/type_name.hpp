#pragma once
#include <string>
#include <typeinfo>

namespace troupe {

/// The name of a type as in its source, with namespaces: "troupe::nn::Linear".
std::string type_name(const std::type_info& type);

}  // namespace troupe
