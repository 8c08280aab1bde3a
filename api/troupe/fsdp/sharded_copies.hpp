#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "troupe/fsdp/fully_sharded_data_parallel.hpp"

namespace troupe {

/// Copies of a sharded model's state in the memory of two members each, so that a loop goes on when one is
/// lost:
///
///     sharded_copies copies;  // outlives groups and models
///     while (...) try {
///       nn::GPT model(...);
///       FullyShardedDataParallel sharded(model, world.default_group(), options);
///       auto optimizer = sharded.make_optimizer(...);
///       copies.restore(sharded, *optimizer);  // nothing in the first life
///       while (sharded.step() < num_steps) {
///         ...  // a step
///         copies.take(sharded, *optimizer);
///       }
///     } catch (const collective_error&) {
///     }
///
/// A member keeps a copy of its own part (weights, optimizer state, the buffers of its first replica), and
/// one of the member before it, which it receives beside the next step. It has those of three steps, and so
/// up to six parts beside its own. One lost member loses nothing; if two neighbours are lost at the same
/// time, a part is. The number of members may change. With a group that the wrapper does not keep alive (a
/// communicator&) `take` waits for the exchange. Not thread-safe.
class sharded_copies {
 public:
  /// Copies the state after a step, as the newest. Waits for the exchange that the last call began. Call it
  /// between steps; all members call it. Throws std::invalid_argument with divisions side by side, which are
  /// copies of each other, and collective_error if a member is lost.
  void take(FullyShardedDataParallel& sharded, const optim::optimizer_state& optimizer);
  /// Gives a new object and its optimizer the newest state of which the members have all parts, and its step;
  /// returns that. None if there is no such state: what there is of others is dropped. All members call it.
  /// Throws std::runtime_error if the state is another model's or optimizer's.
  std::optional<std::uint64_t> restore(FullyShardedDataParallel& sharded, optim::optimizer_state& optimizer);
  /// The steps of which this member holds a part, ascending.
  std::vector<std::uint64_t> steps() const;
  /// In CPU memory.
  std::size_t size_bytes() const;

 private:
  /// Of a state: its step, how many parts it has, and which this is.
  struct part_id {
    std::uint64_t step = 0;
    std::int64_t num_parts = 0, part = 0;
    auto operator<=>(const part_id&) const = default;
  };

  void finish_exchange();
  void end_exchange();
  void keep_newest(std::int64_t num_parts, std::int64_t own_part);
  /// The bytes of a part, from the member that has it, on the one that gets it or on every member.
  tensor moved(communicator& group, const part_id& which, int from, int to);

  std::map<part_id, tensor> held_;
  /// What comes from the member before.
  part_id coming_id_;
  tensor coming_;
  work sent_, received_;
  std::shared_ptr<communicator> group_;  ///< whose calls these are
};

}  // namespace troupe
