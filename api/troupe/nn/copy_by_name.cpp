#include "troupe/nn/copy_by_name.hpp"

#include <map>
#include <stdexcept>

namespace troupe::nn {
namespace {

using by_name = std::map<std::string, tensor>;

/// What `saved` has that `expected` has not, or the other way; empty if they fit.
std::string difference(const by_name& expected, const std::vector<named_tensor>& saved) {
  by_name found;
  for (const auto& [name, value] : saved) {
    auto known = expected.find(name);
    if (known == expected.end()) return "unknown tensor " + name;
    if (value.type() != known->second.type() || value.extents() != known->second.extents())
      return name + " is " + describe(value) + ", expected " + describe(known->second);
    if (!found.emplace(name, value).second) return "two tensors named " + name;
  }
  for (const auto& [name, value] : expected)
    if (!found.contains(name)) return "missing tensor " + name;
  return {};
}

}  // namespace

void copy_by_name(const std::vector<named_tensor>& to, const std::vector<named_tensor>& saved) {
  by_name own;
  for (const auto& [name, value] : to) own.emplace(name, value);
  if (auto problem = difference(own, saved); !problem.empty())
    throw std::runtime_error("cannot load the state: " + problem);
  for (const auto& [name, value] : saved) own.at(name).copy_from(value);
}

}  // namespace troupe::nn
