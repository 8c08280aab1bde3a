#include "bench/processes/own_transport.hpp"

#include <chrono>
#include <span>
#include <stdexcept>

namespace troupe::bench {

transport::ucx_transport_options own_transport_options(const actors::process::process& self) {
  auto token = std::as_bytes(std::span(self.group_token()));
  transport::ucx_transport_options options;
  options.rank = self.rank();
  options.world_size = self.world_size();
  options.secret.assign(token.begin(), token.end());
  return options;
}

std::map<int, transport::process_address> exchange_addresses(actors::process::process& self,
                                                             const std::string& name,
                                                             const transport::process_address& own) {
  auto& keys = self.keys();
  keys.put(name + " control " + std::to_string(self.rank()), own.control);
  keys.put(name + " data " + std::to_string(self.rank()), own.data);
  std::map<int, transport::process_address> members;
  for (int rank = 0; rank < self.world_size(); ++rank) {
    auto found = [&](const std::string& what) {
      auto value = keys.get(name + what + std::to_string(rank), std::chrono::minutes(1));
      if (!value)
        throw std::runtime_error(name + ": rank " + std::to_string(rank) + " did not come within a minute");
      return *value;
    };
    members[rank] = {found(" control "), found(" data ")};
  }
  return members;
}

}  // namespace troupe::bench
