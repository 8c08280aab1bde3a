#include "troupe/nn/graph_wiring.hpp"

namespace troupe::nn {

std::map<graph_source, std::vector<graph_use>> uses_of(const graph_wiring& wiring) {
  std::map<graph_source, std::vector<graph_use>> uses;
  for (int node = 0; node < wiring.size(); ++node) {
    int input = 0;
    for (const auto& source : wiring.at(node).inputs) uses[source].push_back({node, input++});
  }
  return uses;
}

}  // namespace troupe::nn
