#include "troupe/data_parallel/shard_strategy.hpp"

#include <cstddef>
#include <string>

#include "troupe/error/errors.hpp"

namespace troupe {

std::string_view to_string(shard_strategy strategy) {
  constexpr std::string_view names[] = {"none", "optimizer", "grad", "full"};
  return names[static_cast<std::size_t>(strategy)];
}

shard_strategy shard_strategy_from(std::string_view name) {
  for (auto known :
       {shard_strategy::none, shard_strategy::optimizer, shard_strategy::grad, shard_strategy::full})
    if (name == to_string(known)) return known;
  throw bad_input("--shard must be one of none, optimizer, grad, full, got '" + std::string(name) + "'");
}

}  // namespace troupe
