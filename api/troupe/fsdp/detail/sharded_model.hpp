#pragma once
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "troupe/fsdp/detail/sharded_gradients.hpp"
#include "troupe/fsdp/detail/sharded_values.hpp"

namespace troupe::detail {

struct sharded_model_options {
  sharded_values::options values;
  bool keeps_gradient_memory = false;
  bool finds_unused = false;
  collective::logical_rank_map replicas;  ///< of this division, counted from 0
};

/// A model whose parameters are cut into parts that the members of a group own: the units, their values and
/// gradients. Not thread-safe.
class sharded_model {
 public:
  /// The parameters are materialized, or described: then they are initialized from `seed`, one at a time. Of
  /// materialized ones those of member 0 count.
  sharded_model(nn::Module& model, std::vector<unit_of_model> units, sharding_groups groups,
                const sharded_model_options& options, std::optional<std::uint64_t> seed);
  /// Waits for calls in flight, unless the group has failed.
  ~sharded_model();
  sharded_model(const sharded_model&) = delete;
  sharded_model& operator=(const sharded_model&) = delete;

  const sharding_groups& groups() const { return groups_; }
  /// Among whose members the model is divided.
  communicator& group() { return *groups_.shards; }
  std::vector<sharded_unit>& units() { return units_; }
  sharded_values& values() { return *values_; }
  sharded_gradients& gradients() { return *gradients_; }
  const collective::logical_rank_map& replicas() const { return options_.replicas; }
  const std::vector<flat_parameters*>& frozen_flats() const { return frozen_; }
  /// All flats, in the order of the units.
  std::vector<flat_parameters*> flats() const { return flats_of(units_); }
  /// Cuts anew between parameters: for optimizers that step whole ones. All members call it. Throws
  /// std::logic_error between a backward pass and the step with its sums.
  void own_whole_parameters();
  /// How often it was cut anew: an optimizer of the pieces before is out of date.
  int num_cuts() const { return num_cuts_; }
  /// Compares, beside what follows, whether all members have gathered the same units in the same order. Calls
  /// of equal units cannot be told apart.
  void begin_order_check();
  /// Throws std::logic_error, after aborting the group, if they have not.
  void finish_order_check();
  /// Takes the values of parameters from whole ones of the same name, which have their shapes, in any
  /// floating dtype. All members call it.
  void load(const std::vector<named_tensor>& saved);

 private:
  void initialize(nn::Module& model, std::optional<std::uint64_t> seed);
  void cut();
  void own(flat_parameters& flat, const tensor& values);

  sharding_groups groups_;
  sharded_model_options options_;
  layout::shard_granularity granularity_ = layout::shard_granularity::blocks;
  std::vector<sharded_unit> units_;
  std::vector<flat_parameters*> trained_, frozen_;
  std::map<const flat_parameters*, std::vector<std::int64_t>> parts_;  ///< elements by member
  int num_cuts_ = 0;
  call_order calls_;
  std::unique_ptr<sharded_values> values_;
  std::unique_ptr<sharded_gradients> gradients_;
  tensor orders_;  ///< by member
  work order_call_;
};

}  // namespace troupe::detail
