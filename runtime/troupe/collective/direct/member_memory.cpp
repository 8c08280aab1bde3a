#include "troupe/collective/direct/member_memory.hpp"

#include <algorithm>
#include <utility>

namespace troupe::direct {

void member_memory::withdraw_all(const board& at) {
  for (const auto& each : std::exchange(reached_, {})) withdraw(each, at);
}

in_reach::in_reach(member_memory& memory, std::span<const std::byte> elements)
    : memory_(&memory), first_(elements.data()) {
  memory.reached_.push_back(elements);
}

in_reach::in_reach(in_reach&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), first_(other.first_) {}

in_reach& in_reach::operator=(in_reach&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(first_, other.first_);
  return *this;
}

in_reach::~in_reach() {
  if (!memory_) return;
  auto& all = memory_->reached_;
  auto own = std::ranges::find(all, first_, [](const auto& each) { return each.data(); });
  if (own != all.end()) all.erase(own);
}

}  // namespace troupe::direct
