#pragma once
#include <cstddef>
#include <vector>

#include "troupe/collective/engine/element_range.hpp"
#include "troupe/collective/hierarchy/placement.hpp"

namespace troupe::hierarchy {

/// Elements that go as one message from each host to one member, their owner.
struct chunk {
  element_range elements;
  /// By host: the member there that sends the owner this host's data of the chunk, and receives the result.
  std::vector<int> partners;
};

/// Which member owns which elements of a call, cut into chunks. On each host the chunks of an owner elsewhere
/// are divided evenly among the members as partners. So a byte crosses between two hosts once, and all
/// members take part. A value; the same on all members.
class chunk_plan {
 public:
  struct options {
    std::size_t element_bytes = 4;
    std::size_t max_bytes = std::size_t{1} << 19;  ///< of a chunk
  };
  /// owned: by member, the elements that it owns; ascending on each host.
  chunk_plan(const placement& layout, const std::vector<element_range>& owned, const options& wanted);

  /// The chunks that `member` owns, ascending.
  const std::vector<chunk>& of(int member) const { return chunks_[static_cast<std::size_t>(member)]; }
  /// The largest number of chunks that one member owns.
  std::size_t max_chunks() const;

 private:
  void plan_host(const placement& layout, const std::vector<element_range>& owned, int host,
                 const options& wanted);

  std::vector<std::vector<chunk>> chunks_;  // by member
};

/// By member: `count` elements divided evenly among `hosts`, and on each host among its members. Members of
/// other hosts get none.
std::vector<element_range> ranges_by_host(const placement& layout, const std::vector<int>& hosts,
                                          std::int64_t count, std::size_t element_bytes);

}  // namespace troupe::hierarchy
