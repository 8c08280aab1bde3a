#include "troupe/collective/shm/local_group.hpp"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include "troupe/collective/shm/shm_backend.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::collective {
namespace {

using shm::buffer_location;
using shm::control_block;

/// One address space: a location is an address, and everything is reachable.
class thread_memory : public shm::member_memory {
 public:
  buffer_location locate(std::span<const std::byte> elements) override {
    return {0, reinterpret_cast<std::uint64_t>(elements.data())};
  }
  std::byte* resolve(int, const buffer_location& location) override {
    return reinterpret_cast<std::byte*>(location.offset);
  }
  tensor allocate(shape extents, dtype type) override { return tensor::zeros(std::move(extents), type); }
  tensor empty(shape extents, dtype type) override { return tensor::empty(std::move(extents), type); }
  // The group has been aborted, so no thread begins an access. Those that have begun end soon, since a single
  // thread cannot be stopped.
  void revoke(std::span<const std::byte>, const control_block& block) override {
    for (int i = 0; i < block.num_members(); ++i)
      while (block.is_accessing(i)) std::this_thread::yield();
  }
};

class local_backend : public shm::shm_backend {
 public:
  local_backend(group_description group, std::shared_ptr<std::byte> memory, const progress_engine& engine)
      : shm::shm_backend(group,
                         control_block(memory.get(), group.size(), group.member,
                                       std::vector(group.ranks.size(), engine.event())),
                         std::make_unique<thread_memory>()),
        memory_(std::move(memory)) {}
  std::string_view name() const override { return "local"; }

 private:
  std::shared_ptr<std::byte> memory_;
};

std::shared_ptr<std::byte> zeroed_memory(std::size_t size_bytes) {
  auto size = (size_bytes + 63) / 64 * 64;
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::aligned_alloc(64, size)), std::free);
  if (!memory) throw std::bad_alloc();
  std::memset(memory.get(), 0, size);
  return memory;
}

}  // namespace

std::vector<std::unique_ptr<communicator>> make_local_group(int size, const communicator_options& options,
                                                            std::string name) {
  if (size < 1) throw_invalid("make_local_group", "at least one member", std::to_string(size));
  std::vector<world_rank> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_local_group(std::move(ranks), options, std::move(name));
}

std::vector<std::unique_ptr<communicator>> make_local_group(std::vector<world_rank> ranks,
                                                            communicator_options options, std::string name) {
  if (ranks.empty()) throw_invalid("make_local_group", "at least one rank", "none");
  auto size = static_cast<int>(ranks.size());
  group_description group{std::move(name), std::move(ranks), 0};
  auto memory = zeroed_memory(control_block::size_bytes(size));
  if (!options.engine) options.engine = std::make_shared<progress_engine>();
  std::vector<std::unique_ptr<communicator>> members;
  for (int i = 0; i < size; ++i) {
    group.member = i;
    auto backend = std::make_unique<local_backend>(group, memory, *options.engine);
    members.push_back(std::make_unique<communicator>(group, std::move(backend), options));
  }
  return members;
}

}  // namespace troupe::collective
