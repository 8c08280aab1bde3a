#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "troupe/shared_memory/peer_heap.hpp"
#include "troupe/transport/tensor_header.hpp"

namespace troupe::transport {

/// In a process's address, between the nonce and the address of UCX's worker.
constexpr std::size_t heap_address_bytes = sizeof(std::uint32_t) + sizeof(shared_memory::heap_name);
void append_heap_address(const shared_memory::heap_address& heap, std::vector<std::byte>& bytes);
shared_memory::heap_address heap_address_in(std::span<const std::byte> bytes);

/// Which memory of this process the others of a generation read in place, and which of theirs this one reads.
///
/// The elements of a tensor from transport::allocate_shared go to a peer as those of any other at first, and
/// the header says where they are. If the peer can map that segment, it tells (segment_report::mapped), and
/// from then on headers go alone. Peers of other hosts never tell. When the segment is freed, the owner tells
/// (freed), so that the peer does not keep it.
///
/// Not thread-safe.
class memory_sharing {
 public:
  /// `heap` must outlive it.
  explicit memory_sharing(shared_memory::shared_heap& heap) : heap_(heap) {}

  void connect(int rank, const shared_memory::heap_address& heap) {
    peers_.insert_or_assign(rank, peer(heap));
  }

  /// What is told to a peer, in a header without elements.
  struct notice {
    int to_rank = 0;
    shared_place what;
  };
  bool has_notices() const { return !notices_.empty() || heap_.has_released(); }
  std::vector<notice> take_notices();
  /// Of a peer, without elements.
  void on_notice(int from_rank, const shared_place& notice);

  // Of this process's memory:
  /// Nothing if the bytes are not from the heap, or there are none.
  std::optional<shared_place> place_of(std::span<const std::byte> bytes) const;
  /// Whether the peer has told that it reads it.
  bool is_read_by(int rank, const shared_place& place) const;

  // Of a peer's memory:
  /// The place of elements that came with their header.
  void on_offer(int from_rank, const shared_place& place);
  /// See peer_heap.
  std::optional<tensor> refer_to(int from_rank, const shared_place& place, const tensor_layout& layout) const;

 private:
  struct peer {
    explicit peer(const shared_memory::heap_address& address) : memory(address) {}
    shared_memory::peer_heap memory;
    std::set<std::uint64_t> offered;  ///< segments of its memory, mapped or not
    std::set<std::uint64_t> reads;    ///< segments of this process that the peer reads
  };
  void tell_freed();

  shared_memory::shared_heap& heap_;
  std::map<int, peer> peers_;
  std::vector<notice> notices_;
};

}  // namespace troupe::transport
