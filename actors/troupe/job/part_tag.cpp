#include "troupe/job/part_tag.hpp"

namespace troupe::actors::job {

transport::tensor_tag part_tag(transport::tensor_role role, std::uint64_t generation, std::uint64_t step,
                               std::uint32_t job, const layout::part_id& part) {
  auto number = [](int one) { return static_cast<std::uint32_t>(one); };
  return {.generation = generation,
          .step = step,
          .call = job,
          .stage = number(part.cell.stage),
          .role = role,
          .replica = number(part.cell.replica),
          .slice = number(part.cell.slice),
          .shard = number(part.shard)};
}

layout::part_id part_of(const transport::tensor_tag& tag) {
  auto number = [](std::uint32_t one) { return static_cast<int>(one); };
  return {{number(tag.stage), number(tag.replica), number(tag.slice)}, number(tag.shard)};
}

}  // namespace troupe::actors::job
