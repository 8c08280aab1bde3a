#include "troupe/actor/failure.hpp"

#include <caf/deep_to_string.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

namespace troupe {

caf::error failure(const std::string& what) { return caf::make_error(caf::sec::runtime_error, what); }

caf::error failure_from(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& problem) {
    return failure(problem.what());
  } catch (...) {
    return failure("an exception that is no std::exception");
  }
}

std::string describe(const caf::error& problem) {
  if (problem == caf::sec::runtime_error && problem.context().match_elements<std::string>())
    return problem.context().get_as<std::string>(0);
  return caf::deep_to_string(problem);
}

}  // namespace troupe
