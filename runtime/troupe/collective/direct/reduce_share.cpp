#include "troupe/collective/direct/reduce_share.hpp"

#include <vector>

#include "troupe/collective/direct/share.hpp"

namespace troupe::direct {

void reduce_share(meeting& at, const share& which, std::span<std::byte* const> outputs,
                  std::size_t whole_bytes) {
  auto offset = static_cast<std::size_t>(which.first) * at.element_bytes();
  std::vector<const std::byte*> inputs;
  for (int i = 0; i < at.num_members(); ++i) inputs.push_back(at.input_of(i) + offset);
  const auto& signature = at.what().signature;
  tree_reduce(inputs, outputs, which.count, signature.type, signature.op, store_for(whole_bytes));
}

}  // namespace troupe::direct
