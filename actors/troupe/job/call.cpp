#include "troupe/job/call.hpp"

namespace troupe {
namespace {

std::string name_of(call_kind kind) {
  switch (kind) {
    case call_kind::train:
      return "train";
    case call_kind::evaluate:
      return "evaluate";
    case call_kind::hash:
      return "hash";
    case call_kind::barrier:
      return "barrier";
  }
  return "unknown";
}

}  // namespace

std::string to_string(const call_request& request) {
  return name_of(request.kind) + " (call " + std::to_string(request.index) + ", source " +
         std::to_string(request.source) + ", step " + std::to_string(request.target_step) + ", " +
         std::to_string(request.num_batches) + " batches of " + std::to_string(request.num_microbatches) +
         " microbatches)";
}

}  // namespace troupe
