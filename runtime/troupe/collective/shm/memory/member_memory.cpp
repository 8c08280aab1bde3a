#include "troupe/collective/shm/memory/member_memory.hpp"

#include <algorithm>
#include <utility>

namespace troupe::collective::shm {
namespace {

void copy_elements(const tensor& from, std::span<std::byte> to) {
  copy_bytes(from.bytes().data(), to.data(), to.size(), store_for(to.size()));
}

/// The tensor itself, or reachable memory of its size.
tensor reachable(member_memory& memory, const tensor& wanted) {
  if (memory.locate(wanted.bytes()).is_reachable()) return wanted;
  return memory.empty(wanted.shape(), wanted.dtype());
}

}  // namespace

exposed_tensors::exposed_tensors(member_memory& memory, const collective_operation& what, exposure which)
    : what_(what) {
  const auto &input = what.input, &output = what.output;
  bool has_input = which != exposure::output && input.defined();
  bool has_output = which != exposure::input && output.defined();
  if (has_input) {
    input_ = reachable(memory, input);
    if (this->input() != input.bytes().data()) copy_elements(input, input_.bytes());
    exposed_input_ = exposed_range(memory, std::as_const(input_).bytes());
    input_location_ = memory.locate(std::as_const(input_).bytes());
  }
  if (!has_output) return;
  if (has_input && input.bytes().data() == output.bytes().data()) {
    output_ = input_;
    output_location_ = input_location_;
  } else {
    output_ = reachable(memory, output);
    exposed_output_ = exposed_range(memory, std::as_const(output_).bytes());
    output_location_ = memory.locate(std::as_const(output_).bytes());
  }
}

void exposed_tensors::copy_output() {
  auto wanted = what_.output_bytes();
  if (!wanted.empty() && output() != wanted.data()) copy_elements(output_, wanted);
}

void member_memory::revoke_all(const control_block& block) {
  for (const auto& each : std::exchange(exposed_, {})) revoke(each, block);
}

exposed_range::exposed_range(member_memory& memory, std::span<const std::byte> elements)
    : memory_(&memory), first_(elements.data()) {
  memory.exposed_.push_back(elements);
}

exposed_range::exposed_range(exposed_range&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), first_(other.first_) {}

exposed_range& exposed_range::operator=(exposed_range&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(first_, other.first_);
  return *this;
}

exposed_range::~exposed_range() {
  if (!memory_) return;
  auto& all = memory_->exposed_;
  auto own = std::ranges::find(all, first_, [](const auto& each) { return each.data(); });
  if (own != all.end()) all.erase(own);
}

}  // namespace troupe::collective::shm
