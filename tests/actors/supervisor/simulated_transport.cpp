#include <utility>
#include <vector>

#include "simulated_process.hpp"

namespace troupe::testing {

int simulated_transport::rank() const { return self_.rank; }

troupe::transport::process_address simulated_transport::begin_generation(std::uint64_t generation) {
  data_generation = generation;
  connected_generation_ = 0;
  return {{std::byte(self_.id)}, {std::byte(self_.id), std::byte(generation)}};
}

void simulated_transport::connect(std::uint64_t generation,
                                  const std::map<int, troupe::transport::process_address>& peers) {
  data_generation = connected_generation_ = generation;
  id_of_rank_.clear();
  for (const auto& [rank, address] : peers) id_of_rank_[rank] = std::to_integer<int>(address.control.at(0));
}

void simulated_transport::send_control(int to_rank, std::uint64_t generation,
                                       std::span<const std::byte> body) {
  if (!self_.alive) return;
  if (to_rank == self_.rank) return self_.gate.deliver(self_.rank, generation, body);
  if (!id_of_rank_.contains(to_rank)) return;
  auto to = id_of_rank_[to_rank];
  auto& receiver = *job_.processes_.at(static_cast<std::size_t>(to - 1));
  std::vector<std::byte> frame(body.begin(), body.end());
  job_.carry({self_.id, to, 0}, [&receiver, generation, frame, from = self_.rank] {
    if (receiver.alive) receiver.gate.deliver(from, generation, frame);
  });
}

void simulated_transport::send_tensor(int to_rank, const troupe::transport::tensor_tag& tag, tensor value) {
  if (!self_.alive || tag.generation != connected_generation_) return;
  if (to_rank == self_.rank) return self_.directory.deliver(tag, std::move(value));
  auto to = id_of_rank_.at(to_rank);
  auto& receiver = *job_.processes_.at(static_cast<std::size_t>(to - 1));
  job_.carry({self_.id, to, job_.next_lane_++}, [&receiver, tag, value] {
    if (receiver.alive && receiver.out.data_generation == tag.generation)
      receiver.directory.deliver(tag, value);
  });
}

}  // namespace troupe::testing
