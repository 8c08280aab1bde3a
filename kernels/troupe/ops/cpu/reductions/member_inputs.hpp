#pragma once
#include <array>
#include <span>
#include <vector>

#include "troupe/ops/tree_reduction.hpp"

namespace troupe::cpu {

/// The inputs of a reduction, indexed by first member; without allocation for few members.
class member_inputs {
 public:
  explicit member_inputs(std::span<const std::byte* const> leaves) : count_(leaves.size()) {
    auto all = storage();
    for (std::size_t i = 0; i < leaves.size(); ++i) all[i].elements = leaves[i];
  }
  explicit member_inputs(std::span<const node_elements> nodes) {
    for (const auto& each : nodes) count_ += static_cast<std::size_t>(each.num_members);
    auto all = storage();
    std::size_t first = 0;
    for (const auto& each : nodes) {
      all[first] = each;
      first += static_cast<std::size_t>(each.num_members);
    }
  }
  member_inputs(const member_inputs&) = delete;
  member_inputs& operator=(const member_inputs&) = delete;

  std::span<const node_elements> by_first_member() const {
    return {many_.empty() ? few_.data() : many_.data(), count_};
  }

 private:
  std::span<node_elements> storage() {
    if (count_ <= few_.size()) return few_;
    many_.resize(count_);
    return many_;
  }

  std::size_t count_ = 0;
  std::array<node_elements, 8> few_{};
  std::vector<node_elements> many_;
};

}  // namespace troupe::cpu
