#include "troupe/cluster/agent.hpp"

#include "troupe/cluster/agent_server.hpp"

namespace troupe {

std::unique_ptr<agent> make_agent(const agent_options& options, agent_callbacks callbacks) {
  return std::make_unique<agent_server>(options, std::move(callbacks));
}

}  // namespace troupe
