#include "troupe/actor/child_id.hpp"

namespace troupe::actors::actor {
namespace {

/// " of replica 1 slice 3", without what is 0.
std::string lane_text(const child_id& one) {
  std::string text;
  if (one.replica != 0) text += " replica " + std::to_string(one.replica);
  if (one.slice != 0) text += " slice " + std::to_string(one.slice);
  return text.empty() ? text : " of" + text;
}

}  // namespace

std::string to_string(const child_id& one) {
  switch (one.role) {
    case child_role::loader:
      return "the loader";
    case child_role::peer_copy_store:
      return "the peer copy store";
    case child_role::disk:
      return "the disk actor";
    case child_role::snapshot_writer:
      return "the snapshot writer";
    case child_role::stage:
      return "stage " + std::to_string(one.number) + lane_text(one);
    case child_role::device:
      return "device " + std::to_string(one.number);
    case child_role::scheduler:
      return "the scheduler";
    case child_role::gatherer:
      return "the gatherer";
    case child_role::inspector:
      return "the inspector";
  }
  return "an actor";
}

}  // namespace troupe::actors::actor
