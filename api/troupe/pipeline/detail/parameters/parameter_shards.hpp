#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "troupe/autograd/parameter.hpp"
#include "troupe/contents/tensor_contents.hpp"
#include "troupe/layout/shard_layout.hpp"
#include "troupe/pipeline/detail/parameters/bucket_layout.hpp"
#include "troupe/program/stage_parameters.hpp"

namespace troupe::detail {

/// Which shard of a stage's parameters a replica owns: that of its number.
struct owned_shard {
  int index = 0;
  int count = 1;
  layout::shard_granularity granularity = layout::shard_granularity::blocks;
  /// By how many replicas shards are moved on, so that the rests of several stages add up evenly.
  int rotation = 0;
  bool frees_gradients = false;  ///< ZeRO, stage 2
  bool frees_values = false;     ///< with frees_gradients: ZeRO, stage 3
};

/// The parameters of a stage, whole in each replica, cut into pieces that the replicas own: ZeRO, stage 1.
/// Each replica steps its own pieces and holds the optimizer's state of these alone; between two steps it
/// gets the others from their owners. A piece is a parameter whose value is a view of the whole one's
/// elements. A pure function of the parameters' shapes: the same pieces in all replicas.
///
/// The gradient of a piece is a view of the whole one's as well, unless gradients are freed (ZeRO, stage 2).
/// Then `sent` has what the replica has computed, which goes when it has been read. The gradient of an owned
/// piece is the sum, in memory of its own, from when it comes until the step.
///
/// If values are freed (ZeRO, stage 3) an owned piece has memory of its own, and the parameters, with the
/// pieces of others, have values between `attach_values` and `release_values` only.
///
/// Not thread-safe.
class parameter_shards {
 public:
  /// `parameters`: materialized; they outlive this. `by_use`: all their indices, in the order in which
  /// forwards need them. `sharing`: parameters that have the value of the first among them.
  parameter_shards(std::vector<named_parameter> parameters, const std::vector<std::size_t>& by_use,
                   const owned_shard& which, const std::vector<std::vector<named_parameter>>& sharing = {});
  parameter_shards(const parameter_shards&) = delete;
  parameter_shards& operator=(const parameter_shards&) = delete;

  /// All pieces, each with the name of its parameter, parameter by parameter.
  const std::vector<named_parameter>& pieces() const { return pieces_; }
  /// The same with the gradients that this replica has computed.
  const std::vector<named_parameter>& sent() const { return frees_gradients() ? sent_ : pieces_; }
  bool frees_gradients() const { return which_.frees_gradients; }
  bool frees_values() const { return which_.frees_values; }
  /// All indices of pieces, in the order in which forwards need them.
  const std::vector<std::size_t>& by_use() const { return by_use_; }
  const bucket_owners& owners() const { return owners_; }
  int own_index() const { return which_.index; }
  bool is_owned(std::size_t piece) const { return owners_.of_parameter[piece] == which_.index; }
  std::vector<named_parameter> owned() const;
  /// The index of an owned piece among these.
  std::size_t index_in_owned(std::size_t piece) const;
  /// The pieces of a parameter, in the order of its elements, as [first, end).
  std::pair<std::size_t, std::size_t> pieces_of(const parameter& whole) const;
  /// The first element of a piece in its parameter.
  std::int64_t first_of(std::size_t piece) const { return assigned_[piece].first; }
  parameter& whole_of(std::size_t piece) const { return *parameters_[assigned_[piece].tensor].target; }
  /// The owners have stepped the parameters, or the step is not made.
  void mark_stepped();

  /// The gradients of `sent` are views of the present ones of the parameters, and are there if these are.
  void take_gradients();
  /// The same of one parameter.
  void take_gradient(const parameter& whole);
  /// Nobody reads what this replica has computed of a parameter's gradient any more: lets go of it.
  void free_gradient(parameter& whole);
  /// The same of all, and of the sums, at the end of a step.
  void free_gradients();

  /// Gives the parameters memory, if they have none, with the elements of owned pieces; those of others are
  /// to come. Neither has an effect if values are not freed.
  void attach_values();
  void release_values();

  /// Of a U: see stage_parameters.
  std::vector<program::stage_parameters::weight_bucket> weight_buckets() const;
  tensor weights_in(int bucket) const;
  void take_weights(int bucket, const tensor& weights);
  bool is_stepped(int bucket) const { return buckets_[static_cast<std::size_t>(bucket)].is_stepped; }
  /// These buckets are to come.
  void begin_gather(const std::vector<int>& missing);
  /// Whether all have come that have elements of parameter `index`.
  bool is_gathered(std::size_t index) const { return num_missing_[index] == 0; }

  /// What a tensor of the owned pieces' optimizer, or a piece, has of the model's tensor: of one named by a
  /// piece, or "PIECE/name" with its shape, the piece's elements. None: it belongs to no piece.
  std::optional<tensor_contents> contents_of(const named_tensor& held) const;

 private:
  struct weight_bucket {
    int owner = 0;
    bool is_stepped = true;
    std::vector<optim::parameter_part> parts = {};  ///< of pieces
    std::int64_t num_elements() const;
  };

  parameter& make_piece(std::size_t piece);
  parameter& make_sent(std::size_t piece);
  void make_buckets();
  tensor elements_of(const optim::parameter_part& part) const;

  std::vector<named_parameter> parameters_;
  owned_shard which_;
  std::vector<layout::shard_piece> assigned_;
  std::deque<parameter> made_;
  std::vector<named_parameter> pieces_;
  std::vector<named_parameter> sent_;  ///< if gradients are freed
  std::vector<std::size_t> by_use_;
  bucket_owners owners_;
  std::vector<weight_bucket> buckets_;
  std::map<const parameter*, std::size_t> index_of_;  ///< in parameters_
  /// Of `parameters`, the others with its value.
  std::map<const parameter*, std::vector<parameter*>> sharing_;
  std::vector<int> num_missing_;      ///< [parameters] parts that are to come
  std::set<const parameter*> freed_;  ///< whose gradients are let go of in this step
};

}  // namespace troupe::detail
