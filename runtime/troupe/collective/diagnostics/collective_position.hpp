#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::collective {

/// Where one member of a group is in the order of the group's collective calls.
struct collective_position {
  std::string group;                ///< name of the group, unique in the job
  std::vector<std::int32_t> ranks;  ///< World ranks of its members
  std::uint64_t sequence = 0;       ///< of the newest call that has begun or ended here; 0: none
  std::string call;                 ///< the call with this number, as "all_reduce(sum, f32[4])"; empty: none
  std::uint8_t is_in_call = 0;      ///< it has begun and not ended
  double for_s = 0;                 ///< since it has begun; 0: it has ended
  double longest_s = 0;             ///< of the newest calls that ended here
  template <class Archive>
  void serialize(Archive& archive) {
    archive(group, ranks, sequence, call, is_in_call, for_s, longest_s);
  }
};

}  // namespace troupe::collective
