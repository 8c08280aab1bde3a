#include "troupe/actor/actor_error.hpp"

#include <caf/atom.hpp>
#include <caf/deep_to_string.hpp>
#include <caf/make_message.hpp>
#include <caf/message.hpp>
#include <caf/sec.hpp>

#include "troupe/error/device_lost.hpp"
#include "troupe/error/errors.hpp"

namespace troupe::actors::actor {

namespace {

constexpr auto category = caf::atom("troupe");

}  // namespace

caf::error make_error(actor_error code, const std::string& text) {
  return {static_cast<std::uint8_t>(code), category, caf::make_message(text)};
}

bool operator==(const caf::error& problem, actor_error code) {
  return problem && problem.compare(static_cast<std::uint8_t>(code), category) == 0;
}

std::optional<actor_error> code_of(const caf::error& problem) {
  if (!problem || problem.category() != category) return {};
  return static_cast<actor_error>(problem.code());
}

caf::error unavailable(const std::string& what) { return make_error(actor_error::unavailable, what); }

caf::error error_from(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const bad_input& problem) {
    return make_error(actor_error::bad_input, problem.what());
  } catch (const device_lost& problem) {
    return make_error(actor_error::device_lost, problem.what());
  } catch (const std::exception& problem) {
    return make_error(actor_error::failed, problem.what());
  } catch (...) {
    return make_error(actor_error::failed, "an exception that is no std::exception");
  }
}

bool is_bad_input(const caf::error& problem) { return problem == actor_error::bad_input; }

bool has_ended(const caf::error& problem) {
  return problem == actor_error::failed || problem == actor_error::device_lost ||
         problem == caf::sec::request_receiver_down || is_bad_input(problem);
}

std::string describe(const caf::error& problem) {
  if (problem && problem.category() == category && problem.context().match_elements<std::string>())
    return problem.context().get_as<std::string>(0);
  return caf::deep_to_string(problem);
}

}  // namespace troupe::actors::actor
