#pragma once
#include <utility>
#include <vector>

#include "troupe/collective/direct/board.hpp"

namespace troupe::direct {

struct running_call {
  const collective_operation* what;
  std::uint64_t sequence;
};

/// This member is in a call while it lives: its backend knows, and the other members if it is a collective.
class presence {
 public:
  presence(std::vector<running_call>& all, board& at, const collective_operation& what,
           std::uint64_t sequence);
  presence(presence&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)), at_(other.at_), call_(other.call_) {}
  presence& operator=(presence&&) = delete;
  ~presence() {
    if (all_) end();
  }

 private:
  void end();
  bool is_collective() const { return call_.what->peer < 0; }

  std::vector<running_call>* all_;
  board& at_;
  running_call call_;
};

}  // namespace troupe::direct
