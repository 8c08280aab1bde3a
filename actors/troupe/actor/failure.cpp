#include "troupe/actor/failure.hpp"

#include <caf/deep_to_string.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

#include "troupe/error/errors.hpp"

namespace troupe {

caf::error failure(const std::string& what) {
  return caf::make_error(caf::sec::unavailable_or_would_block, what);
}

namespace {

caf::error ended_by(const std::string& what) { return caf::make_error(caf::sec::runtime_error, what); }

}  // namespace

caf::error failure_from(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const bad_input& problem) {
    return caf::make_error(caf::sec::invalid_argument, std::string(problem.what()));
  } catch (const std::exception& problem) {
    return ended_by(problem.what());
  } catch (...) {
    return ended_by("an exception that is no std::exception");
  }
}

bool is_bad_input(const caf::error& problem) { return problem == caf::sec::invalid_argument; }

bool has_ended(const caf::error& problem) {
  return problem == caf::sec::runtime_error || problem == caf::sec::request_receiver_down ||
         is_bad_input(problem);
}

std::string describe(const caf::error& problem) {
  bool ours = problem == caf::sec::runtime_error || problem == caf::sec::unavailable_or_would_block ||
              is_bad_input(problem);
  if (ours && problem.context().match_elements<std::string>())
    return problem.context().get_as<std::string>(0);
  return caf::deep_to_string(problem);
}

}  // namespace troupe
