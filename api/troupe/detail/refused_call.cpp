#include "troupe/detail/refused_call.hpp"

namespace troupe::detail {

void refuse_call(actors::process::process& self, actors::job::call_kind kind, std::uint64_t step,
                 const std::string& problem) {
  actors::job::call_request request;
  request.kind = kind;
  request.target_step = step;
  request.problem = problem;
  self.run(request, {});
  throw bad_input(problem);
}

}  // namespace troupe::detail
