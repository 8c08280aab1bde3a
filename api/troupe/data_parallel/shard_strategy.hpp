#pragma once
#include <cstdint>
#include <string_view>

namespace troupe {

/// What the replicas of a pipeline divide among themselves instead of each holding all of it (ZeRO,
/// Rajbhandari et al. 2020). No bit depends on it.
enum class shard_strategy : std::uint8_t {
  none,
  /// the optimizer's state: each replica steps some weights, and gets the others (ZeRO, stage 1)
  optimizer,
  /// gradients too: they are held from a step's first backward until the owners have read them, at the
  /// latest in G (ZeRO, stage 2)
  grad,
  /// weights too: a stage has those of the others for its passes only (ZeRO, stage 3; FSDP)
  full
};

std::string_view to_string(shard_strategy strategy);
/// Throws bad_input naming what is known.
shard_strategy shard_strategy_from(std::string_view name);

}  // namespace troupe
