#pragma once
#include <array>
#include <string_view>

#include "troupe/schedule/action.hpp"

namespace troupe::schedule {

/// PyTorch's names of what it has no letter for.
struct named_kind {
  action_kind kind;
  std::string_view name;
};
inline constexpr std::array named_kinds = {named_kind{action_kind::unshard, "UNSHARD"},
                                           named_kind{action_kind::reshard, "RESHARD"}};

}  // namespace troupe::schedule
