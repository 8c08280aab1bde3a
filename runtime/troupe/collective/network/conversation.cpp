#include "troupe/collective/network/conversation.hpp"

namespace troupe::network {

conversation::conversation(exchange& over, const group_description& group, const network_sizes& sizes,
                           const collective_operation& what, std::uint64_t sequence)
    : over_(over), group_(group), sizes_(sizes), what_(what), sequence_(sequence) {
  if (what_.peer < 0) over_.begin_call(sequence_, what_.signature);
}

int conversation::after(int distance) const { return (member() + distance) % num_members(); }

std::span<std::byte> conversation::output(const share& which) const {
  auto whole = what_.output;  // a handle to the same elements
  return part(whole.bytes(), which);
}

void conversation::introduce() {
  if (num_members() > 1) over_.post_note(after(1), sequence_, what_.signature);
}

std::shared_ptr<const transfer> conversation::send(int to, carried which, std::uint32_t block,
                                                   std::span<const std::byte> bytes) {
  return under_way_.emplace_back(over_.post_send(to, key(which, block), what_.signature, bytes));
}

std::shared_ptr<const transfer> conversation::receive(int from, carried which, std::uint32_t block,
                                                      std::span<std::byte> bytes) {
  return under_way_.emplace_back(over_.post_receive(from, key(which, block), what_.signature, bytes));
}

bool conversation::all_done() {
  while (!under_way_.empty() && under_way_.front()->is_done()) under_way_.pop_front();
  return under_way_.empty();
}

message_key conversation::key(carried which, std::uint32_t block) const {
  return {sequence_, block * num_carried + static_cast<std::uint32_t>(which),
          what_.peer < 0 ? lane::collectives : lane::between_two};
}

}  // namespace troupe::network
