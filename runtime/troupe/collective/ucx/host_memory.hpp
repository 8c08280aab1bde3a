#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "troupe/collective/direct/member_memory.hpp"
#include "troupe/collective/ucx/host_peer.hpp"
#include "troupe/collective/ucx/shared_heap.hpp"

namespace troupe {

/// The members of a group are processes of one host: what lies in one's heap is mapped by the others. The
/// owner gives a segment to all before it first names it, so nobody waits for an owner.
class host_memory : public direct::member_memory {
 public:
  /// peers: by member, null for this one.
  host_memory(shared_heap& heap, std::vector<std::shared_ptr<host_peer>> peers);

  direct::buffer_place place_of(std::span<const std::byte> elements) override;
  std::byte* find(int member, const direct::buffer_place& place) override;
  tensor allocate(shape extents, dtype type) override { return heap_.allocate(std::move(extents), type); }
  tensor empty(shape extents, dtype type) override { return heap_.empty(std::move(extents), type); }
  void withdraw(std::span<const std::byte> elements, const direct::board& at) override;

 private:
  void tidy();

  shared_heap& heap_;
  std::vector<std::shared_ptr<host_peer>> peers_;
  std::vector<std::map<std::uint64_t, std::shared_ptr<mapping>>> found_;  // by member
  int num_places_ = 0;
};

}  // namespace troupe
