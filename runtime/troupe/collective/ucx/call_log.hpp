#pragma once
#include <cstdint>
#include <map>

#include "troupe/collective/operation.hpp"

namespace troupe {

/// What this member called last, so that a message that comes late can still be held to it.
class call_log {
 public:
  void add(std::uint64_t sequence, const call_signature& signature) {
    calls_.insert_or_assign(sequence, signature);
    if (calls_.size() > most) calls_.erase(calls_.begin());
  }
  /// Null if it is not known any more, or not yet.
  const call_signature* find(std::uint64_t sequence) const {
    auto at = calls_.find(sequence);
    return at == calls_.end() ? nullptr : &at->second;
  }
  std::uint64_t newest() const { return calls_.empty() ? 0 : calls_.rbegin()->first; }

 private:
  static constexpr std::size_t most = 64;
  std::map<std::uint64_t, call_signature> calls_;
};

}  // namespace troupe
