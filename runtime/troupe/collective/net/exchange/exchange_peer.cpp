#include "troupe/collective/net/exchange/exchange_peer.hpp"

namespace troupe::collective {

std::shared_ptr<ucx_message> exchange_peer::take_posted(const net::message_key& key) {
  auto posted = posted_.extract(key);
  return posted ? std::move(posted.mapped()) : nullptr;
}

void exchange_peer::keep(const net::message_header& header, std::span<const std::byte> body,
                         void* descriptor) {
  early_message early{header, {}, descriptor, body.size()};
  if (!descriptor) early.bytes.assign(body.begin(), body.end());
  early_.insert_or_assign(header.key(), std::move(early));
}

const exchange_peer::early_message* exchange_peer::find_early(const net::message_key& key) const {
  auto early = early_.find(key);
  return early == early_.end() ? nullptr : &early->second;
}

void exchange_peer::discard() {
  posted_.clear();
  std::erase_if(early_, [](const auto& each) { return !each.second.descriptor; });
}

std::vector<void*> exchange_peer::take_unfetched() {
  std::vector<void*> descriptors;
  for (const auto& [key, early] : std::exchange(early_, {}))
    if (early.descriptor) descriptors.push_back(early.descriptor);
  return descriptors;
}

}  // namespace troupe::collective
