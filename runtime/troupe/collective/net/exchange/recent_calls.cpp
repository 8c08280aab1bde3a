#include "troupe/collective/net/exchange/recent_calls.hpp"

#include "troupe/collective/diagnostics/failure_diagnosis.hpp"

namespace troupe::collective {

void recent_calls::add(std::uint64_t sequence, const call_signature& signature) {
  calls_.insert_or_assign(sequence, signature);
  if (calls_.size() > capacity) calls_.erase(calls_.begin());
}

std::pair<std::uint64_t, std::optional<call_signature>> recent_calls::newest() const {
  if (calls_.empty()) return {};
  return *calls_.rbegin();
}

void recent_calls::require_same(const net::message_header& theirs) const {
  auto own = calls_.find(theirs.sequence);
  if (own != calls_.end()) require(own->second, theirs);
}

void recent_calls::require(const call_signature& own, const net::message_header& theirs) const {
  const auto& signature = theirs.signature;
  if (theirs.channel == net::channel::collectives) {
    if (signature != own)
      throw failure_diagnosis(group_).mismatch({own, theirs.sequence}, theirs.from, signature);
  } else if (signature.type != own.type || signature.count != own.count) {
    throw failure_diagnosis(group_).wrong_message({own, theirs.sequence}, theirs.from, signature);
  }
}

}  // namespace troupe::collective
