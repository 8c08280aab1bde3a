#pragma once
#include <cstdint>
#include <functional>

#include "troupe/program/stage_program.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::execution {

/// The sums of one pass of a synchronized stage, as one replica sees them. Each replica sends its values to
/// all others, and all add up in the fixed tree over replicas (tree_reduce), so that they have the same bits.
/// Meant for few values, since each replica gets those of all.
///
/// A message says which action it is of and which sum of it, and the last one of a pass that the pass has
/// ended. So replicas whose modules add up differently are told so, instead of adding up unlike things or
/// waiting.
class synchronized_pass final : public program::replica_sums {
 public:
  using sender = std::function<void(const transport::tensor_tag& to, tensor value)>;
  /// Waits for a tensor; throws action_interrupted.
  using receiver = std::function<tensor(const transport::tensor_tag& tag)>;
  /// `tag`: of the stage and step; its port and replica are set for each message. `num_messages`: that each
  /// replica has sent for the stage in this step.
  synchronized_pass(const action& op, int replica, int num_replicas, const transport::tensor_tag& tag,
                    std::uint32_t& num_messages, sender send, receiver receive);

  void add_up(tensor& values) override;
  /// Tells the others that this replica adds up no more in the pass. They do not wait for it.
  void end();

 private:
  /// `values`: undefined at the end.
  tensor message_of(const tensor& values) const;
  void send(const tensor& message);
  void check(const tensor& message, int from, const tensor& own) const;
  transport::tensor_tag tag_of(int from, int to) const;

  action op_;
  int replica_, num_replicas_;
  transport::tensor_tag tag_;
  std::uint32_t& num_messages_;
  sender sender_;
  receiver receiver_;
  int number_ = 0;  ///< of the next sum in this pass
};

}  // namespace troupe::execution
