#include "troupe/shared_memory/shared_heap.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "troupe/error/errors.hpp"
#include "troupe/posix/files/memory_file.hpp"
#include "troupe/tensor/memory.hpp"

namespace troupe::shared_memory {

mapping::~mapping() {
  if (first_) ::munmap(first_, size_bytes_);
}

std::string segment_name(const heap_name& heap, std::uint64_t id) {
  constexpr auto digits = "0123456789abcdef";
  std::string name = "troupe-";
  for (auto each : heap) {
    name += digits[std::to_integer<unsigned>(each) >> 4];
    name += digits[std::to_integer<unsigned>(each) & 15];
  }
  return name + '-' + std::to_string(id);
}

std::shared_ptr<shared_segment> make_segment(std::uint64_t id, std::size_t size_bytes,
                                             const std::string& name) {
  auto made = std::make_shared<shared_segment>();
  made->id = id;
  made->size_bytes = whole_pages(size_bytes);
  made->fd = posix::make_memory_file(name, "make a shared segment");
  check_posix(::ftruncate(made->fd.get(), static_cast<off_t>(made->size_bytes)), "size a shared segment");
  check_posix(::fcntl(made->fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
              "seal a shared segment");
  return made;
}

std::unique_ptr<mapping> map_segment(int fd, std::size_t size_bytes, paging when) {
  auto* memory = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw system_failure("map a shared segment", errno);
  auto mapped = std::make_unique<mapping>(static_cast<std::byte*>(memory), size_bytes);
  if (when == paging::when_used) {
    ::madvise(memory, size_bytes, MADV_DONTDUMP);
    return mapped;
  }
  // Large pages where the system allows them for shared memory; then all pages at once, not by one fault
  // each.
  ::madvise(memory, size_bytes, MADV_HUGEPAGE);
#if defined(MADV_POPULATE_WRITE)
  if (::madvise(memory, size_bytes, MADV_POPULATE_WRITE) != 0 && errno == ENOMEM)
    throw system_failure("fill a shared segment with memory", errno);
#endif
  return mapped;
}

namespace {

void require_sealed(int fd, std::size_t size_bytes) {
  struct stat status {};
  check_posix(::fstat(fd, &status), "look at a shared segment");
  auto seals = check_posix(::fcntl(fd, F_GET_SEALS), "look at the seals of a shared segment");
  if ((seals & F_SEAL_SHRINK) == 0 || static_cast<std::size_t>(status.st_size) != size_bytes)
    throw std::runtime_error("[shared segment] expected " + std::to_string(size_bytes) +
                             " bytes sealed against shrinking, got " + std::to_string(status.st_size));
}

}  // namespace

std::unique_ptr<mapping> map_received_segment(int fd, std::size_t size_bytes, paging when) {
  require_sealed(fd, size_bytes);
  return map_segment(fd, size_bytes, when);
}

std::unique_ptr<mapping> map_received_for_reading(int fd, std::size_t size_bytes) {
  require_sealed(fd, size_bytes);
  auto* memory = ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) throw system_failure("map a shared segment for reading", errno);
  ::madvise(memory, size_bytes, MADV_DONTDUMP);
  return std::make_unique<mapping>(static_cast<std::byte*>(memory), size_bytes);
}

namespace {

heap_name random_name() {
  heap_name name;
  check_posix(::getrandom(name.data(), name.size(), 0), "get random bytes");
  return name;
}

/// Rounds up to one of eight sizes between two powers of two, in whole pages: at most an eighth is wasted.
std::size_t block_bytes(std::size_t size_bytes) {
  auto step = std::max(page_bytes, std::bit_floor(std::max(size_bytes, std::size_t{1})) / 8);
  return (size_bytes + step - 1) / step * step;
}

}  // namespace

/// The heap's state, which its tensors keep alive. A block is the address range of one tensor. It consists of
/// extents, each of which maps a part of one segment: one extent at first, more when parts were revoked.
class shared_heap::state {
 public:
  explicit state(freed_segments freed) : freed_(freed) {}

  const heap_name& name() const { return name_; }

  std::byte* take(std::size_t size) {
    if (auto* first = take_cached(size)) return first;
    auto segment = new_segment(size);
    auto memory = map_segment(segment->fd.get(), size);
    std::lock_guard lock(mutex_);
    auto* first = memory->first();
    extents_[first] = {std::move(segment), 0, size};
    memory->release();
    count(size);
    ++statistics_.num_from_system;
    return first;
  }

  void give_back(std::byte* first, std::size_t size) {
    std::lock_guard lock(mutex_);
    statistics_.current -= size;
    if (const auto& own = extents_.at(first);
        freed_ == freed_segments::cached && own.size == size && own.of) {
      free_[size].push_back(first);
      statistics_.cached += size;
    } else {
      unmap(first, size);
    }
  }

  std::optional<location> locate(std::span<const std::byte> bytes) const {
    std::lock_guard lock(mutex_);
    auto at = covering(bytes.data());
    if (at == extents_.end() || !at->second.of) return {};
    auto offset = static_cast<std::size_t>(bytes.data() - at->first);
    if (offset + bytes.size() > at->second.size) return {};
    return location{at->second.of, at->second.offset + offset};
  }

  std::shared_ptr<shared_segment> new_segment(std::size_t size) {
    std::uint64_t id = 0;
    {
      std::lock_guard lock(mutex_);
      id = ++last_id_;
    }
    return troupe::shared_memory::make_segment(id, size, segment_name(name_, id));
  }

  void revoke(std::span<const std::byte> bytes) {
    if (!locate(bytes)) return;
    auto begin = reinterpret_cast<std::uintptr_t>(bytes.data()) / page_bytes * page_bytes;
    auto end = whole_pages(reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size());
    auto* first = reinterpret_cast<std::byte*>(begin);
    auto size = end - begin;
    auto [fresh, memory] = fresh_pages(size);
    std::lock_guard lock(mutex_);
    std::memcpy(memory->first(), first, size);
    // Moves the filled pages to the old address in one step, so that the address is never unmapped. Not by
    // the C library's mremap: UCX 1.13 intercepts it and truncates the new address.
    auto moved = ::syscall(SYS_mremap, memory->first(), size, size, MREMAP_MAYMOVE | MREMAP_FIXED, first);
    check_posix(moved, "replace the pages of a tensor");
    memory->release();
    cut(first, size, std::move(fresh));
    ++statistics_.num_revoked;
  }

  void release_cached() {
    std::lock_guard lock(mutex_);
    for (auto& [size, same_size] : std::exchange(free_, {}))
      for (auto* first : same_size) unmap(first, size);
    statistics_.cached = 0;
  }

  bool has_released() const { return has_released_; }

  bool has_segment(std::uint64_t id) const {
    std::lock_guard lock(mutex_);
    return std::ranges::any_of(extents_,
                               [id](const auto& each) { return each.second.of && each.second.of->id == id; });
  }

  std::vector<std::uint64_t> take_released() {
    std::lock_guard lock(mutex_);
    has_released_ = false;
    return std::exchange(released_, {});
  }

  shared_heap_statistics statistics() const {
    std::lock_guard lock(mutex_);
    return statistics_;
  }

  ~state() {
    for (const auto& [first, each] : extents_) ::munmap(first, each.size);
  }

 private:
  struct extent {
    std::shared_ptr<shared_segment> of;  // null: private memory
    std::uint64_t offset = 0;
    std::size_t size = 0;
  };
  using extent_map = std::map<std::byte*, extent, std::less<>>;

  /// Without free descriptors it is private memory: safe, but calls copy the tensor from then on.
  std::pair<std::shared_ptr<shared_segment>, std::unique_ptr<mapping>> fresh_pages(std::size_t size) {
    try {
      auto segment = new_segment(size);
      auto memory = map_segment(segment->fd.get(), size);
      return {std::move(segment), std::move(memory)};
    } catch (const system_failure&) {
      auto* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED) throw;
      return {nullptr, std::make_unique<mapping>(static_cast<std::byte*>(memory), size)};
    }
  }

  std::byte* take_cached(std::size_t size) {
    std::lock_guard lock(mutex_);
    auto& same_size = free_[size];
    if (same_size.empty()) return nullptr;
    auto* first = same_size.back();
    same_size.pop_back();
    statistics_.cached -= size;
    count(size);
    return first;
  }

  extent_map::const_iterator covering(const std::byte* address) const {
    auto after = extents_.upper_bound(const_cast<std::byte*>(address));
    return after == extents_.begin() ? extents_.end() : std::prev(after);
  }

  void count(std::size_t size) {
    statistics_.current += size;
    statistics_.peak = std::max(statistics_.peak, statistics_.current);
  }

  /// [first, first + size), inside one extent, becomes all of `fresh`.
  void cut(std::byte* first, std::size_t size, std::shared_ptr<shared_segment> fresh) {
    auto at = covering(first);
    auto* outer_first = at->first;
    auto outer = at->second;
    extents_.erase(at);
    auto before = static_cast<std::size_t>(first - outer_first);
    auto after = outer.size - before - size;
    if (before > 0) extents_[outer_first] = {outer.of, outer.offset, before};
    if (after > 0) extents_[first + size] = {outer.of, outer.offset + before + size, after};
    extents_[first] = {std::move(fresh), 0, size};
    end(outer.of);
  }

  void unmap(std::byte* first, std::size_t size) {
    for (auto* each = first; each < first + size;) {
      auto at = extents_.find(each);
      each += at->second.size;
      auto of = at->second.of;
      extents_.erase(at);
      end(of);
    }
    ::munmap(first, size);
  }

  /// An extent of `of` was removed. Without extents the segment is released.
  void end(const std::shared_ptr<shared_segment>& of) {
    auto is_used = std::ranges::any_of(extents_, [&](const auto& each) { return each.second.of == of; });
    if (!of || is_used) return;
    released_.push_back(of->id);
    has_released_ = true;
  }

  const freed_segments freed_;
  const heap_name name_ = random_name();
  mutable std::mutex mutex_;
  extent_map extents_;
  std::map<std::size_t, std::vector<std::byte*>> free_;
  std::vector<std::uint64_t> released_;
  std::atomic<bool> has_released_ = false;
  std::uint64_t last_id_ = 0;
  shared_heap_statistics statistics_;
};

shared_heap::shared_heap(freed_segments freed) : state_(std::make_shared<state>(freed)) {}

const heap_name& shared_heap::name() const { return state_->name(); }

tensor shared_heap::allocate(shape extents, dtype type) {
  auto made = empty(std::move(extents), type);
  made.fill_zero();
  return made;
}

tensor shared_heap::empty(shape extents, dtype type) {
  auto wanted = static_cast<std::size_t>(extents.num_elements()) * size_bytes(type);
  if (wanted <= largest_private_bytes) return tensor::empty(std::move(extents), type);
  auto size = block_bytes(wanted);
  auto charged = std::make_shared<memory_charge>(wanted);
  auto* first = state_->take(size);
  std::shared_ptr<void> owner(first, [from = state_, size, charged = std::move(charged)](void* block) {
    from->give_back(static_cast<std::byte*>(block), size);
  });
  return tensor::wrap(std::move(owner), first, std::move(extents), type);
}

std::optional<shared_heap::location> shared_heap::locate(std::span<const std::byte> bytes) const {
  return state_->locate(bytes);
}
std::shared_ptr<shared_segment> shared_heap::make_segment(std::size_t size_bytes) {
  return state_->new_segment(size_bytes);
}
void shared_heap::revoke(std::span<const std::byte> bytes) { state_->revoke(bytes); }
bool shared_heap::has_released() const { return state_->has_released(); }
bool shared_heap::has_segment(std::uint64_t id) const { return state_->has_segment(id); }
std::vector<std::uint64_t> shared_heap::take_released() { return state_->take_released(); }
void shared_heap::release_cached() { state_->release_cached(); }
shared_heap_statistics shared_heap::statistics() const { return state_->statistics(); }

}  // namespace troupe::shared_memory
