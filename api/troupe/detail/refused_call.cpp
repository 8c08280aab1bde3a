#include "troupe/detail/refused_call.hpp"

namespace troupe {

void refuse_call(process& self, call_kind kind, std::uint64_t step, const std::string& problem) {
  call_request request;
  request.kind = kind;
  request.target_step = step;
  request.problem = problem;
  self.run(request, {});
  throw bad_input(problem);
}

}  // namespace troupe
