#pragma once
#include <cstdint>
#include <vector>

#include "troupe/tensor/tensor.hpp"

namespace troupe::gradients {

/// What a gradient_compressor sends at a time.
struct gradient_part {
  std::int64_t first = 0, count = 0;  ///< of the gradient's elements
  int round = 0;
};

/// How the gradient of one parameter travels between the replicas of a stage, as one of them sees it. Each
/// replica sends a message of each part; what comes back are the sums of the messages' elements over all
/// replicas, or the messages themselves. All replicas make the same sums of it, bit for bit.
///
/// Not thread-safe.
class gradient_compressor {
 public:
  virtual ~gradient_compressor() = default;
  /// In how many rounds the whole gradient travels, each after the sums of the one before. With 1 it travels
  /// in parts, which do not wait for each other. The same in all replicas and steps.
  virtual int num_rounds() const { return 1; }
  /// Whether its messages are the elements as they are, in their own memory.
  virtual bool sends_in_place() const { return false; }
  /// Whether gradients may be in a GPU's memory, where its messages then are too; else in the CPU's.
  virtual bool takes_any_device() const { return false; }
  /// `gradient`: f32 [part.count], which may be written until the step ends; undefined: this replica has none
  /// in this step. Returns f32, bf16 or f16 [n], of which the sums come back, n the same in all replicas; or
  /// i32 [n], of which those of all replicas come back. Undefined: the round before is not received yet.
  virtual tensor message_of(const gradient_part& part, const tensor& gradient) = 0;
  /// `received`: the sums, together, one after the other; or the messages of all replicas, in order; not
  /// changed. Returns the sums of the part's gradients, f32, together; none if they come with a later round.
  /// With a single round it changes nothing that is kept: for several replicas in a process it is called
  /// once.
  virtual std::vector<tensor> sums_from(const gradient_part& part, const std::vector<tensor>& received) = 0;
  /// In place of these, for steps in which gradients travel whole: makes of `gradient`, f32 [n], in place
  /// what is sent. The sum comes back as that of the gradients.
  virtual void prepare_uncompressed(tensor /*gradient*/) {}
  /// The step is over, or was interrupted.
  virtual void end_step() {}
  /// Live handles to what this replica keeps between steps, by unique name.
  virtual std::vector<named_tensor> state() const { return {}; }
  /// The same, of what is equal in all replicas.
  virtual std::vector<named_tensor> shared_state() const { return {}; }
};

}  // namespace troupe::gradients
