#include "troupe/nn/module.hpp"

namespace troupe::nn {

std::vector<named_parameter> Module::named_parameters(const std::string& prefix) {
  std::vector<named_parameter> result;
  collect_parameters(prefix, result);
  return result;
}

std::vector<parameter*> Module::parameters() {
  std::vector<parameter*> result;
  for (const auto& each : named_parameters()) result.push_back(each.target);
  return result;
}

}  // namespace troupe::nn
