#pragma once
#include <map>
#include <optional>
#include <string>

#include "troupe/job/call.hpp"

namespace troupe {

/// Which process is in which call. A process that enters again has gone on to another one.
class roll_call {
 public:
  void enter(int rank, const call_request& request) { entered_[rank] = request; }
  void clear() { entered_.clear(); }

  /// Whether all `world_size` processes are in the call of this index.
  bool is_complete(int world_size, std::size_t index) const;
  /// The lowest rank's. There must be one.
  const call_request& request() const { return entered_.begin()->second; }
  /// Says who does what if the processes are in different calls.
  std::optional<std::string> disagreement() const;
  /// By rank.
  const std::map<int, call_request>& entered() const { return entered_; }

 private:
  std::map<int, call_request> entered_;
};

}  // namespace troupe
