#include "troupe/execution/replicas/block_pool.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace troupe::execution {

struct block_pool::state {
  explicit state(program::stage_parameters::memory_source from) : source(std::move(from)) {}

  const program::stage_parameters::memory_source source;
  std::mutex mutex;
  using blocks = std::multimap<std::int64_t, tensor>;
  blocks unused;  ///< u8, by size
};

namespace {

/// Of a block more than twice as large as what is wanted, most would be wasted.
constexpr std::int64_t most_times = 2;

}  // namespace

block_pool::block_pool(program::stage_parameters::memory_source source)
    : state_(std::make_shared<state>(std::move(source))) {}

tensor block_pool::take(const shape& extents, dtype type) {
  auto wanted = extents.num_elements() * static_cast<std::int64_t>(size_bytes(type));
  state::blocks::node_type block;  // goes back without an allocation, which might fail
  {
    std::lock_guard lock(state_->mutex);
    auto& unused = state_->unused;
    if (auto found = unused.lower_bound(wanted); found != unused.end() && found->first <= most_times * wanted)
      block = unused.extract(found);
  }
  if (!block) {
    state::blocks made;
    made.emplace(wanted, state_->source({wanted}, dtype::u8));
    block = made.extract(made.begin());
  }
  auto* elements = block.mapped().bytes().data();
  auto give_back = [to = state_](state::blocks::node_type* used) {
    std::unique_ptr<state::blocks::node_type> owned(used);
    std::lock_guard lock(to->mutex);
    to->unused.insert(std::move(*owned));
  };
  std::shared_ptr<state::blocks::node_type> owner(new state::blocks::node_type(std::move(block)), give_back);
  return tensor::wrap(std::move(owner), elements, extents, type);
}

void block_pool::clear() {
  std::lock_guard lock(state_->mutex);
  state_->unused.clear();
}

}  // namespace troupe::execution
