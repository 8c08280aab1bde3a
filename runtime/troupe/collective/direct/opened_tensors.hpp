#pragma once
#include <cstdint>

#include "troupe/collective/direct/member_memory.hpp"

namespace troupe::direct {

/// Which of a call's tensors other members reach into.
enum class exposed : std::uint8_t { input, output, both };

/// The tensors of one member's call that others reach into while it lives. Where they cannot be reached, it
/// is copies that can.
class opened_tensors {
 public:
  opened_tensors(member_memory& memory, const collective_operation& what, exposed which);

  buffer_place input_place() const { return input_place_; }
  buffer_place output_place() const { return output_place_; }
  const std::byte* input() const { return input_.bytes().data(); }
  std::byte* output() { return output_.bytes().data(); }
  /// Brings the result to where the caller wants it.
  void take_output();

 private:
  const collective_operation& what_;
  tensor input_, output_;
  in_reach input_reach_, output_reach_;
  buffer_place input_place_, output_place_;
};

}  // namespace troupe::direct
