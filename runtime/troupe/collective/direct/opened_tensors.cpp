#include "troupe/collective/direct/opened_tensors.hpp"

#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {
namespace {

void copy_elements(const tensor& from, std::span<std::byte> to) {
  copy_bytes(from.bytes().data(), to.data(), to.size(), store_for(to.size()));
}

tensor reachable(member_memory& memory, const tensor& wanted) {
  if (memory.place_of(wanted.bytes()).is_reachable()) return wanted;
  return memory.empty(wanted.extents(), wanted.type());
}

}  // namespace

opened_tensors::opened_tensors(member_memory& memory, const collective_operation& what, exposed which)
    : what_(what) {
  const auto &input = what.input, &output = what.output;
  bool has_input = which != exposed::output && input.defined();
  bool has_output = which != exposed::input && output.defined();
  if (has_input) {
    input_ = reachable(memory, input);
    if (this->input() != input.bytes().data()) copy_elements(input, input_.bytes());
    input_reach_ = in_reach(memory, std::as_const(input_).bytes());
    input_place_ = memory.place_of(std::as_const(input_).bytes());
  }
  if (!has_output) return;
  if (has_input && input.bytes().data() == output.bytes().data()) {
    output_ = input_;
    output_place_ = input_place_;
  } else {
    output_ = reachable(memory, output);
    output_reach_ = in_reach(memory, std::as_const(output_).bytes());
    output_place_ = memory.place_of(std::as_const(output_).bytes());
  }
}

void opened_tensors::take_output() {
  auto wanted = what_.output_bytes();
  if (!wanted.empty() && output() != wanted.data()) copy_elements(output_, wanted);
}

}  // namespace troupe::direct
