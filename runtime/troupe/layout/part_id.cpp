#include "troupe/layout/part_id.hpp"

namespace troupe::layout {

std::string to_string(const cell& shown) {
  return "stage " + std::to_string(shown.stage) + " replica " + std::to_string(shown.replica) + " slice " +
         std::to_string(shown.slice);
}

std::string to_string(const part_id& shown) {
  auto text = "stage " + std::to_string(shown.cell.stage);
  if (shown.cell.replica != 0) text += " replica " + std::to_string(shown.cell.replica);
  if (shown.cell.slice != 0) text += " slice " + std::to_string(shown.cell.slice);
  if (shown.shard != 0) text += " shard " + std::to_string(shown.shard);
  return text;
}

part_id without_replica(part_id id) {
  id.cell.replica = 0;
  return id;
}

bool stands_for(const part_id& held, const job_part& wanted) {
  if (wanted.content == replica_content::own) return held == wanted.id;
  return without_replica(held) == without_replica(wanted.id);
}

bool is_written(const job_part& part) {
  return part.content == replica_content::own || part.id.cell.replica == 0;
}

}  // namespace troupe::layout
