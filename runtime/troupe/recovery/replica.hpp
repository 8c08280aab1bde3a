#pragma once
#include <optional>
#include <vector>

#include "troupe/placement/view.hpp"

namespace troupe {

/// The member whose memory keeps a second copy of what `member` hosts: of the members that stay, the next one
/// in a ring. It may host no device itself. None if no other member stays. Throws std::invalid_argument if
/// `member` is not in the view.
std::optional<member_id> keeper_of(const view& present, member_id member);

/// The reverse: the members of whose parts `keeper` keeps a second copy; more than one if some leave.
std::vector<member_id> kept_by(const view& present, member_id keeper);

}  // namespace troupe
