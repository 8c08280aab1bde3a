#include "troupe/pipeline/shard_strategy.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

std::string_view to_string(shard_strategy strategy) {
  return strategy == shard_strategy::none ? "none" : "optimizer";
}

shard_strategy shard_strategy_from(std::string_view name) {
  for (auto known : {shard_strategy::none, shard_strategy::optimizer})
    if (name == to_string(known)) return known;
  throw bad_input("--shard must be one of none, optimizer, got '" + std::string(name) + "'");
}

}  // namespace troupe
