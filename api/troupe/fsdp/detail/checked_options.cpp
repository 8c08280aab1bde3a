#include "troupe/fsdp/detail/checked_options.hpp"

#include <string>

#include "troupe/error/errors.hpp"

namespace troupe::detail {

void require_in_range(const fully_sharded_options& options, int num_members) {
  if (options.strategy == shard_strategy::none)
    throw_invalid("FullyShardedDataParallel", "strategy optimizer, grad or full (none: use DataParallel)",
                  "none");
  if (!(options.unit_size_mb > 0))
    throw_invalid("FullyShardedDataParallel", "unit_size_mb > 0", std::to_string(options.unit_size_mb));
  if (options.gather_ahead < 0)
    throw_invalid("FullyShardedDataParallel", "gather_ahead >= 0", std::to_string(options.gather_ahead));
  if (options.num_replicas < 0 || options.num_replicas % num_members != 0)
    throw_invalid("FullyShardedDataParallel",
                  "num_replicas that " + std::to_string(num_members) +
                      " members divide evenly, since all make the same passes, or 0 for one on each",
                  std::to_string(options.num_replicas));
}

std::int64_t elements_of_a_unit(const fully_sharded_options& options) {
  constexpr double bytes_of_an_element = 4, bytes_of_a_mib = 1 << 20;
  return static_cast<std::int64_t>(options.unit_size_mb * bytes_of_a_mib / bytes_of_an_element);
}

}  // namespace troupe::detail
