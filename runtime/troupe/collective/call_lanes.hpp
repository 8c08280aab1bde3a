#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "troupe/collective/call.hpp"

namespace troupe {

/// The calls of a group that have not ended: collectives in order, and beside them sends to and receives from
/// each member, in order as well.
class call_lanes {
 public:
  struct lane {
    std::deque<std::shared_ptr<call>> calls;
    std::uint64_t last_sequence = 0;
    /// Gives the call its number.
    void add(std::shared_ptr<call> next) {
      next->sequence = ++last_sequence;
      calls.push_back(std::move(next));
    }
    call* first() const { return calls.empty() ? nullptr : calls.front().get(); }
  };

  lane& of(const collective_operation& what) {
    std::size_t index = 0;
    if (what.peer >= 0)
      index = 1 + 2 * static_cast<std::size_t>(what.peer) +
              (what.signature.kind == collective_kind::receive ? 1 : 0);
    if (index >= lanes_.size()) lanes_.resize(index + 1);
    return lanes_[index];
  }
  auto begin() { return lanes_.begin(); }
  auto end() { return lanes_.end(); }

 private:
  std::vector<lane> lanes_;
};

}  // namespace troupe
