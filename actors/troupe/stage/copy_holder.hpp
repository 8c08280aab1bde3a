#pragma once
#include <spdlog/logger.h>

#include <caf/actor.hpp>
#include <caf/error.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/result.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "troupe/job/latest_copies.hpp"
#include "troupe/layout/part_id.hpp"
#include "troupe/messages/stage.hpp"
#include "troupe/tensor/tensor.hpp"
#include "troupe/transport/transport.hpp"

namespace troupe::actors::stage {

struct copy_holder_options {
  layout::job_part part;
  int rank = 0;
  transport::transport* out = nullptr;
  std::shared_ptr<spdlog::logger> log;              ///< may be null
  std::uint32_t job = 0;                            ///< see job_definition::number
  std::shared_ptr<job::latest_copies> latest = {};  ///< gets each copy; may be null
};

/// The copies of a part's state in this process's memory. Keeps them by step, and tells the scheduler of
/// each. Sends each to the part's keeper, and has the snapshot writer write those that are to be on disk. It
/// knows nothing of what computes the part.
///
/// A member of the actor `self`, whose handlers call it.
class copy_holder {
 public:
  copy_holder(caf::event_based_actor* self, copy_holder_options options)
      : self_(self), options_(std::move(options)) {}

  /// Of the generation in which the job goes on from command.step: forgets later copies.
  void begin_generation(const messages::restore_stage& command);
  /// Tensors of the initial state with infinite or NaN elements; see write_part.
  void set_began_non_finite(std::shared_ptr<const std::vector<named_tensor>> tensors) {
    began_non_finite_ = std::move(tensors);
  }
  /// Of the current generation.
  void add(std::uint64_t step, const tensor& packed);
  void add(const messages::state_copied& copied);
  void clear() { copies_.clear(); }

  void write(const messages::write_copy& command);
  void replace_io(const messages::io_replaced& replaced);
  void replicate_again() const;
  /// As begin_generation does, at the end of a job's part in this process.
  void forget_after(std::uint64_t step);
  void drop_before(const messages::drop_before& command);
  messages::held_parts list() const;
  /// What a request for a step without a copy gets.
  caf::error no_copy_of(std::uint64_t step) const;
  /// Refuses with no_copy_of.
  caf::result<messages::stage_copy> get(std::uint64_t step) const;
  const layout::job_part& part() const { return options_.part; }
  /// Null: there is none.
  const tensor* find(std::uint64_t step) const;

 private:
  struct copy {
    std::uint64_t generation = 0;
    tensor packed;
  };

  void refuse_to_write(std::uint64_t step);
  void send_to_keeper(std::uint64_t step, const tensor& packed) const;

  // constant
  caf::event_based_actor* self_;
  copy_holder_options options_;
  // state
  std::map<std::uint64_t, copy> copies_;  ///< by steps applied
  std::uint64_t committed_step_ = 0;      ///< the newest reported to it
  std::shared_ptr<const std::vector<named_tensor>> began_non_finite_;
  // current generation
  std::uint64_t generation_ = 0;
  caf::actor scheduler_;
  caf::actor peer_copy_store_;
  caf::actor snapshot_writer_;
  std::optional<world_rank> keeper_;  ///< gets a second copy of each
  std::set<std::uint64_t> to_write_;  ///< copies to write when they are made
};

}  // namespace troupe::actors::stage
