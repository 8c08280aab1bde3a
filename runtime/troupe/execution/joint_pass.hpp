#pragma once
#include <cstdint>
#include <functional>

#include "troupe/program/stage_compute.hpp"
#include "troupe/schedule/plan.hpp"
#include "troupe/transport/tensor_tag.hpp"

namespace troupe::execution {

/// The sums of one pass that the lanes along an axis run together (plan::joint), as one of them sees them.
/// Each sends its values to all others, and all add up in the fixed tree over lanes (tree_reduce), so that
/// they have the same bits. Meant for few values, since each lane gets those of all.
///
/// A message says which action it is of and which sum of it, and the last one of a pass that the pass has
/// ended. So lanes whose modules add up differently are told so, instead of adding up unlike things or
/// waiting.
class joint_pass final : public program::lane_sums {
 public:
  using sender = std::function<void(const transport::tensor_tag& to, tensor value)>;
  /// Waits for a tensor; throws action_interrupted.
  using receiver = std::function<tensor(const transport::tensor_tag& tag)>;
  /// `index`: of this lane along the axis. `tag`: of its stage, the step and the axis; its port and its
  /// receiver along the axis are set for each message. `num_messages`: that each lane has sent along the axis
  /// for the stage in this step.
  joint_pass(const action& op, int index, int num_lanes, const transport::tensor_tag& tag,
             std::uint32_t& num_messages, sender send, receiver receive);

  void all_reduce(tensor& values) override;
  /// Tells the others that this lane adds up no more in the pass. They do not wait for it.
  void end();

 private:
  /// `values`: undefined at the end.
  tensor message_of(const tensor& values) const;
  void send(const tensor& message);
  void check(const tensor& message, int from, const tensor& own) const;
  transport::tensor_tag tag_of(int from, int to) const;

  action op_;
  int index_, num_lanes_;
  transport::tensor_tag tag_;
  std::uint32_t& num_messages_;
  sender sender_;
  receiver receiver_;
  int number_ = 0;  ///< of the next sum in this pass
};

}  // namespace troupe::execution
