#include "troupe/transport/data_plane/memory_sharing.hpp"

#include <algorithm>
#include <utility>

#include "troupe/wire/byte_order.hpp"

namespace troupe::transport {

void append_heap_address(const shared_memory::heap_address& heap, std::vector<std::byte>& bytes) {
  auto begin = bytes.size();
  bytes.resize(begin + heap_address_bytes);
  auto added = std::span(bytes).subspan(begin);
  wire::byte_writer writer(added);
  writer.put(static_cast<std::uint32_t>(heap.process));
  writer.put(heap.name);
}

shared_memory::heap_address heap_address_in(std::span<const std::byte> bytes) {
  wire::byte_reader reader(bytes);
  shared_memory::heap_address heap;
  heap.process = static_cast<pid_t>(reader.get<std::uint32_t>());
  std::ranges::copy(reader.take(heap.name.size()), heap.name.begin());
  return heap;
}

void memory_sharing::on_notice(int from_rank, const shared_place& notice) {
  auto found = peers_.find(from_rank);
  if (found == peers_.end()) return;
  auto& from = found->second;
  if (notice.report == segment_report::mapped) {
    if (heap_.has_segment(notice.segment))
      from.reads.insert(notice.segment);
    else  // freed meanwhile
      notices_.push_back({from_rank, {segment_report::freed, notice.segment}});
  } else {
    from.memory.unmap(notice.segment);
    from.offered.erase(notice.segment);
  }
}

std::optional<shared_place> memory_sharing::place_of(std::span<const std::byte> bytes) const {
  auto found = bytes.empty() ? std::nullopt : heap_.locate(bytes);
  if (!found) return {};
  const auto& segment = *found->segment;
  return shared_place{segment_report::holds_elements, segment.id, found->offset, segment.size_bytes,
                      static_cast<std::uint32_t>(segment.fd.get())};
}

auto memory_sharing::take_notices() -> std::vector<notice> {
  if (heap_.has_released()) tell_freed();
  return std::exchange(notices_, {});
}

void memory_sharing::tell_freed() {
  for (auto id : heap_.take_released())
    for (auto& [rank, each] : peers_)
      if (each.reads.erase(id) > 0) notices_.push_back({rank, {segment_report::freed, id}});
}

bool memory_sharing::is_read_by(int rank, const shared_place& place) const {
  auto found = peers_.find(rank);
  return found != peers_.end() && found->second.reads.contains(place.segment);
}

/// One attempt for each segment. The peer may have begun the generation before this process: then it is not
/// connected yet, and the next offer counts.
void memory_sharing::on_offer(int from_rank, const shared_place& place) {
  auto found = peers_.find(from_rank);
  if (found == peers_.end() || !found->second.offered.insert(place.segment).second) return;
  if (found->second.memory.map(place.segment, static_cast<int>(place.fd), place.segment_bytes))
    notices_.push_back({from_rank, {segment_report::mapped, place.segment}});
}

std::optional<tensor> memory_sharing::refer_to(int from_rank, const shared_place& place,
                                               const tensor_layout& layout) const {
  auto found = peers_.find(from_rank);
  if (found == peers_.end()) return {};
  return found->second.memory.refer_to(place.segment, place.offset, layout.extents, layout.type);
}

}  // namespace troupe::transport
