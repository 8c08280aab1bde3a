#include "troupe/collective/shm/memory/group_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "troupe/collective/shm/memory/control_block.hpp"
#include "troupe/collective/shm/memory/peer_process.hpp"
#include "troupe/error/errors.hpp"
#include "troupe/posix/futex.hpp"

namespace troupe::collective {
namespace {

/// Of addresses: only what groups use takes memory.
constexpr std::size_t memory_bytes = std::size_t{1} << 34;
constexpr std::size_t max_new_groups = 1000;

struct directory {
  struct entry {
    std::atomic<std::uint64_t> number;  ///< 0: free
    std::uint64_t offset;
  };
  std::atomic<std::uint32_t> changes;
  entry entries[max_new_groups];
};
constexpr std::size_t first_area = shared_memory::whole_pages(sizeof(directory));

directory& directory_of(const shared_memory::mapping& memory) {
  return *reinterpret_cast<directory*>(memory.first());
}

directory::entry* find_entry(const shared_memory::mapping& memory, std::uint64_t number) {
  auto& all = directory_of(memory).entries;
  auto* found = std::ranges::find_if(all, [&](const auto& each) { return each.number == number; });
  return found == std::end(all) ? nullptr : found;
}

void announce_change(std::atomic<std::uint32_t>& changes) {
  ++changes;
  posix::futex_wake(changes);
}

/// An area begins with words: the number of changes, and a state for each member.
enum : std::uint32_t { absent, arrived, given_up, left };

std::atomic<std::uint32_t>& word_of(std::byte* area, int index) {
  return reinterpret_cast<std::atomic<std::uint32_t>*>(area)[index];
}
std::atomic<std::uint32_t>& state_of(std::byte* area, int member) { return word_of(area, 1 + member); }

std::size_t words_bytes(int num_members) {
  return (sizeof(std::uint32_t) * (1 + static_cast<std::size_t>(num_members)) + 63) / 64 * 64;
}

}  // namespace

std::size_t group_area::size_bytes(int num_members) {
  return shared_memory::whole_pages(words_bytes(num_members) + shm::control_block::size_bytes(num_members));
}

group_area::group_area(std::shared_ptr<shared_memory::mapping> memory, std::size_t offset, int num_members,
                       int member)
    : mapping_(std::move(memory)),
      memory_(mapping_->first() + offset),
      num_members_(num_members),
      member_(member) {}

group_area::~group_area() { set_state(has_begun_ ? left : given_up); }

std::byte* group_area::control_block() const { return memory_ + words_bytes(num_members_); }
std::atomic<std::uint32_t>& group_area::changes() const { return word_of(memory_, 0); }
void group_area::arrive() { set_state(arrived); }
bool group_area::has_arrived(int member) const { return state_of(memory_, member) != absent; }
bool group_area::has_given_up(int member) const { return state_of(memory_, member) == given_up; }

void group_area::set_state(std::uint32_t next) {
  state_of(memory_, member_) = next;
  announce_change(changes());
}

group_memory::group_memory()
    : segment_(shared_memory::make_segment(0, memory_bytes)),
      memory_(map_segment(segment_->fd.get(), memory_bytes, shared_memory::paging::when_used)),
      end_(first_area) {}

bool group_memory::is_free(const used_area& area) const {
  auto* first = memory_->first() + area.offset;
  for (std::size_t i = 0; i < area.peers.size(); ++i) {
    bool has_ended = area.peers[i] && area.peers[i]->has_ended();
    if (!has_ended && state_of(first, static_cast<int>(i)) < given_up) return false;
  }
  return true;
}

/// Their pages go back to the system, and are zero when they are used again.
void group_memory::take_back_free() {
  std::erase_if(used_, [&](const used_area& each) {
    if (!is_free(each)) return false;
    check_posix(::fallocate(descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                            static_cast<off_t>(each.offset), static_cast<off_t>(each.size)),
                "release the memory of a group");
    free_.emplace(each.size, each.offset);
    return true;
  });
}

std::size_t group_memory::allocate(std::size_t size) {
  if (auto again = free_.extract(size)) return again.mapped();
  if (end_ + size > memory_bytes)
    throw std::runtime_error("the groups of this process fill " + std::to_string(memory_bytes >> 30) +
                             " GiB of shared memory: end some, or make groups of fewer processes of a host");
  return std::exchange(end_, end_ + size);
}

std::unique_ptr<group_area> group_memory::add(std::uint64_t number,
                                              const std::vector<std::shared_ptr<peer_process>>& peers,
                                              int member) {
  std::lock_guard lock(mutex_);
  take_back_free();
  auto& all = directory_of(*memory_);
  auto* free = std::ranges::find_if(all.entries, [](const auto& each) { return each.number == 0; });
  if (free == std::end(all.entries))
    throw std::runtime_error(std::to_string(max_new_groups) + " groups of this process are about to begin");
  auto num_members = static_cast<int>(peers.size());
  auto size = group_area::size_bytes(num_members);
  free->offset = allocate(size);
  used_.push_back({free->offset, size, peers});
  auto added = std::make_unique<group_area>(memory_, free->offset, num_members, member);
  free->number = number;
  announce_change(all.changes);
  return added;
}

void group_memory::remove(std::uint64_t number) {
  if (auto* found = find_entry(*memory_, number)) found->number = 0;
}

attached_group_memory::attached_group_memory(int descriptor)
    : memory_(map_received_segment(descriptor, memory_bytes, shared_memory::paging::when_used)) {}

std::atomic<std::uint32_t>& attached_group_memory::changes() const { return directory_of(*memory_).changes; }

std::unique_ptr<group_area> attached_group_memory::find(std::uint64_t number, int num_members,
                                                        int member) const {
  const auto* found = find_entry(*memory_, number);
  if (!found) return nullptr;
  auto offset = found->offset;
  if (found->number != number) return nullptr;  // it was removed meanwhile, and the entry used again
  if (offset < first_area || offset + group_area::size_bytes(num_members) > memory_bytes)
    throw std::runtime_error("a group's memory is said to be outside of its owner's");
  return std::make_unique<group_area>(memory_, offset, num_members, member);
}

}  // namespace troupe::collective
