#pragma once
#include <optional>
#include <vector>

#include "troupe/mesh/hosting.hpp"
#include "troupe/mesh/view.hpp"

namespace troupe::recovery {

/// The member whose memory keeps a second copy of what `member` hosts: of the members that stay, the next one
/// in a ring. It may host no device itself. None if no other member stays. Throws std::invalid_argument if
/// `member` is not in the view.
std::optional<world_rank> keeper_of(const mesh::view& present, world_rank member);

/// The member to which the host of `part` sends its copy: that of keeper_of for the host. None if the copy is
/// a second one anyway: an equal part is hosted by another member that stays, or on the same member by a
/// lower replica, whose copy is sent. Throws std::invalid_argument as host_of and keeper_of do.
std::optional<world_rank> copy_keeper(const layout::job_part& part,
                                      const std::vector<layout::job_part>& parts,
                                      const mesh::placement& placed, const mesh::hosting& hosts,
                                      const mesh::view& present);

/// The reverse of keeper_of: the members of whose parts `keeper` keeps a second copy; more than one if some
/// leave.
std::vector<world_rank> kept_by(const mesh::view& present, world_rank keeper);

}  // namespace troupe::recovery
