#pragma once
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
  presence(presence&& other) noexcept;
  presence& operator=(presence&&) = delete;
  ~presence();

 private:
  bool is_collective() const { return call_.what->peer < 0; }

  std::vector<running_call>* all_;
  board& at_;
  running_call call_;
};

}  // namespace troupe::direct
