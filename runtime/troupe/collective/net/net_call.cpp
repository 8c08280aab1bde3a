#include "troupe/collective/net/net_call.hpp"

namespace troupe::collective::net {

net_call::net_call(message_exchange& over, const group_description& group, const network_sizes& sizes,
                   const collective_operation& what, std::uint64_t sequence)
    : over_(over), group_(group), sizes_(sizes), operation_(what), sequence_(sequence) {
  if (operation_.peer < 0) over_.begin_call(sequence_, operation_.signature);
}

std::span<std::byte> net_call::output(const element_range& range) const {
  auto whole = operation_.output;  // a handle to the same elements
  return part(whole.bytes(), range);
}

void net_call::announce_to_next() {
  if (num_members() > 1) over_.post_call_notice(after(1), sequence_, operation_.signature);
}

std::shared_ptr<const transfer> net_call::send(int to, payload which, std::uint32_t block,
                                               std::span<const std::byte> bytes) {
  return transfers_.emplace_back(over_.post_send(to, key(which, block), operation_.signature, bytes));
}

std::shared_ptr<const transfer> net_call::receive(int from, payload which, std::uint32_t block,
                                                  std::span<std::byte> bytes) {
  return transfers_.emplace_back(over_.post_receive(from, key(which, block), operation_.signature, bytes));
}

bool net_call::all_transfers_done() {
  while (!transfers_.empty() && transfers_.front()->is_done()) transfers_.pop_front();
  return transfers_.empty();
}

message_key net_call::key(payload which, std::uint32_t block) const {
  return {sequence_, block * num_payloads + static_cast<std::uint32_t>(which),
          operation_.peer < 0 ? channel::collectives : channel::point_to_point};
}

}  // namespace troupe::collective::net
