#include "troupe/job/call.hpp"

namespace troupe::actors::job {

std::string name_of(const call_request& request) {
  switch (request.kind) {
    case call_kind::train:
      return "fit";
    case call_kind::evaluate:
      return "evaluate";
    case call_kind::hash:
      return "weights_sha256";
    case call_kind::barrier:
      return "barrier";
    case call_kind::gather:
      return request.receiver < 0 ? "state_dict" : "save";
    case call_kind::predict:
      return "predict";
    case call_kind::forward_backward:
      return "forward_backward";
    case call_kind::optimizer_step:
      return "optimizer_step";
    case call_kind::memory:
      return "memory_report";
    case call_kind::record:
      return "record";
  }
  return "unknown";
}

agreement::job_description description_of(const call_request& request) {
  agreement::job_description description;
  description.add("call", name_of(request) + " (number " + std::to_string(request.index) + ")");
  description.add("data set", "number " + std::to_string(request.source));
  description.add("steps at its end", std::to_string(request.target_step));
  description.add("batches", std::to_string(request.num_batches) + " in " +
                                 std::to_string(request.num_microbatches) + " microbatches");
  description.add("data", request.data);
  description.add("samples", request.content);
  description.add("receiver", request.receiver < 0 ? "all" : "rank " + std::to_string(request.receiver));
  return description;
}

}  // namespace troupe::actors::job
