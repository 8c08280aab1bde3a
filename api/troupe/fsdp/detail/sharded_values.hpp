#pragma once
#include <memory>
#include <string>
#include <vector>

#include "troupe/autograd/pending_update.hpp"
#include "troupe/collective/communicator/communicator.hpp"
#include "troupe/fsdp/detail/call_order.hpp"
#include "troupe/fsdp/detail/pass_order.hpp"
#include "troupe/fsdp/detail/sharded_unit.hpp"
#include "troupe/fsdp/detail/shared_blocks.hpp"

namespace troupe::detail {

enum class model_pass : std::uint8_t { none, forward, evaluation, backward };

/// When the values of a model's units are whole. Where they are let go of, a unit is gathered when an
/// operation reads one of its parameters; the next ones are on their way meanwhile. When an operation reads
/// another unit, those before it are let go of. What is read outside of passes stays whole until the next
/// one. Where values stay, a unit is gathered after each step.
///
/// All members make the same passes, so that their calls come in the same order. Not thread-safe.
class sharded_values {
 public:
  struct options {
    bool frees_values = true;            ///< else they stay whole
    bool frees_after_forward = true;     ///< else the backward pass lets go of them
    std::size_t num_gathered_ahead = 1;  ///< units
  };

  /// The units, the group and the order outlive this object.
  sharded_values(std::vector<sharded_unit>& units, communicator& group, call_order& order,
                 const options& chosen);
  /// Parameters that are detached stay so, and say why when they are read.
  ~sharded_values();
  sharded_values(const sharded_values&) = delete;
  sharded_values& operator=(const sharded_values&) = delete;

  /// The own parts are about to change: gathered values are out of date.
  void begin_step();
  /// They have changed: gathers all, or those with which the next forward pass begins.
  void end_step();
  /// Gathers a unit outside of a pass, for whoever reads its parameters next.
  void gather(std::size_t unit) { read(unit); }
  /// Lets go of all that is gathered.
  void let_go();
  /// What was written to gathered values goes to the own parts.
  void take_writes();

  shared_blocks& blocks() { return blocks_; }
  std::uint64_t num_gathers() const { return num_gathers_; }
  /// Of whole values that are there now.
  std::size_t gathered_bytes() const;

 private:
  friend class running_pass;
  class unit_update;
  struct gather_state {
    std::vector<tensor> coming;  ///< by flat; empty if none is on its way
    std::vector<work> calls;
    bool is_whole = false;
    bool is_read_in_pass = false;
    std::uint64_t read_by = 0;  ///< the operation (values_read_together)
  };

  void begin_pass(model_pass kind);
  void end_pass();
  void read(std::size_t unit);
  bool is_done_with(std::size_t unit) const;
  void begin_gather(std::size_t unit);
  tensor memory_for(std::int64_t num_elements);
  void finish_gather(std::size_t unit);
  void let_go_of(std::size_t unit);
  pass_order* order();

  std::vector<sharded_unit>& units_;
  communicator& group_;
  call_order& calls_;
  options options_;
  shared_blocks blocks_;
  std::vector<std::shared_ptr<unit_update>> updates_;
  std::vector<gather_state> states_;
  pass_order forwards_, backwards_;
  model_pass kind_ = model_pass::none;
  std::size_t newest_;  ///< the unit that was read last
  std::uint64_t num_gathers_ = 0;
};

/// A pass of the model. One that is left by an exception ends too.
class running_pass {
 public:
  running_pass(sharded_values& values, model_pass kind) : values_(values) { values_.begin_pass(kind); }
  ~running_pass() { values_.kind_ = model_pass::none; }
  running_pass(const running_pass&) = delete;
  running_pass& operator=(const running_pass&) = delete;

  /// Lets go of what the next pass does not begin with.
  void end() { values_.end_pass(); }

 private:
  sharded_values& values_;
};

}  // namespace troupe::detail
