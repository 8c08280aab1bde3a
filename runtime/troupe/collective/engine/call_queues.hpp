#pragma once
#include <deque>
#include <memory>
#include <vector>

#include "troupe/collective/work.hpp"

namespace troupe {

/// The calls of a group that have not ended, in queues whose calls run one after the other: one queue for the
/// collectives, and for each other member one for sends and one for receives.
class call_queues {
 public:
  struct queue {
    std::deque<std::shared_ptr<call>> calls;
    std::uint64_t last_sequence = 0;
    /// Gives the call its sequence number.
    void add(std::shared_ptr<call> next) {
      next->sequence = ++last_sequence;
      calls.push_back(std::move(next));
    }
    call* first() const { return calls.empty() ? nullptr : calls.front().get(); }
  };

  queue& of(const collective_operation& what) {
    std::size_t index = 0;
    if (what.peer >= 0)
      index = 1 + 2 * static_cast<std::size_t>(what.peer) +
              (what.signature.kind == collective_kind::receive ? 1 : 0);
    if (index >= queues_.size()) queues_.resize(index + 1);
    return queues_[index];
  }
  auto begin() { return queues_.begin(); }
  auto end() { return queues_.end(); }

 private:
  std::vector<queue> queues_;
};

}  // namespace troupe
