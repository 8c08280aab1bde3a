#include "troupe/collective/local/local_group.hpp"

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <thread>

#include "troupe/collective/direct/direct_backend.hpp"
#include "troupe/error/errors.hpp"

namespace troupe {
namespace {

using direct::board;
using direct::buffer_place;

/// One address space: a place is an address, and everything is within reach.
class local_memory : public direct::member_memory {
 public:
  buffer_place place_of(std::span<const std::byte> elements) override {
    return {0, reinterpret_cast<std::uint64_t>(elements.data())};
  }
  std::byte* find(int, const buffer_place& place) override {
    return reinterpret_cast<std::byte*>(place.offset);
  }
  tensor allocate(shape extents, dtype type) override { return tensor::zeros(std::move(extents), type); }
  tensor empty(shape extents, dtype type) override { return tensor::empty(std::move(extents), type); }
  // A thread cannot be stopped alone: whoever is at it ends soon, and nobody begins.
  void withdraw(std::span<const std::byte>, const board& at) override {
    for (int i = 0; i < at.num_members(); ++i)
      while (at.is_reaching(i)) std::this_thread::yield();
  }
};

class local_backend : public direct::direct_backend {
 public:
  local_backend(group_description group, std::shared_ptr<std::byte> memory)
      : direct_backend(group, board(memory.get(), group.size(), group.member),
                       std::make_unique<local_memory>()),
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
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_local_group(std::move(ranks), options, std::move(name));
}

std::vector<std::unique_ptr<communicator>> make_local_group(std::vector<int> ranks,
                                                            const communicator_options& options,
                                                            std::string name) {
  if (ranks.empty()) throw_invalid("make_local_group", "at least one rank", "none");
  auto size = static_cast<int>(ranks.size());
  group_description group{std::move(name), std::move(ranks), 0};
  auto memory = zeroed_memory(board::size_bytes(size));
  std::vector<std::unique_ptr<communicator>> members;
  for (int i = 0; i < size; ++i) {
    group.member = i;
    members.push_back(
        std::make_unique<communicator>(group, std::make_unique<local_backend>(group, memory), options));
  }
  return members;
}

}  // namespace troupe
