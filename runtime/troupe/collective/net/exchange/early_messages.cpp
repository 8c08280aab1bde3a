#include "troupe/collective/net/exchange/early_messages.hpp"

#include <utility>

namespace troupe::collective {

void early_messages::keep(const net::message_header& header, std::span<const std::byte> body) {
  auto& group = groups_[header.group];
  if (group.is_incomplete) return;
  count_ -= std::erase_if(group.messages, [&](const message& each) {
    return each.header.from == header.from && each.header.kind == header.kind;
  });
  if (count_ >= most_) {
    count_ -= group.messages.size();
    group = {.messages = {}, .is_incomplete = true};
    return;
  }
  group.messages.push_back({header, {body.begin(), body.end()}});
  ++count_;
}

early_messages::of_group early_messages::take(std::uint64_t number) {
  auto found = groups_.extract(number);
  if (!found) return {};
  count_ -= found.mapped().messages.size();
  return std::move(found.mapped());
}

}  // namespace troupe::collective
