#include "troupe/actor/failure.hpp"

#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>

#include "troupe/error/errors.hpp"

using namespace troupe;

namespace {

template <class Thrown>
std::string described(const Thrown& thrown) {
  return describe(failure_from(std::make_exception_ptr(thrown)));
}

}  // namespace

TEST_CASE("an exception becomes an error with its text") {
  auto problem = failure_from(std::make_exception_ptr(std::runtime_error("disk full")));
  CHECK(problem == caf::sec::runtime_error);
  CHECK(describe(problem) == "disk full");
  CHECK(described(std::logic_error("")) == "");
}

TEST_CASE("an actor that ended is told from one that answers that it cannot") {
  CHECK(has_ended(failure_from(std::make_exception_ptr(std::runtime_error("no memory")))));
  CHECK(has_ended(failure_from(std::make_exception_ptr(bad_input("no such class")))));
  CHECK(has_ended(caf::make_error(caf::sec::request_receiver_down)));
  CHECK_FALSE(has_ended(failure("no such copy")));
  CHECK_FALSE(has_ended(caf::make_error(caf::sec::request_timeout)));
  CHECK(describe(failure("no such copy")) == "no such copy");
}

TEST_CASE("what is no std::exception is described as such") {
  CHECK(described(42) == "an exception that is no std::exception");
}

TEST_CASE("errors of CAF are described in its own words") {
  CHECK(describe(caf::make_error(caf::sec::request_timeout)).find("request_timeout") != std::string::npos);
  CHECK(describe(caf::make_error(caf::exit_reason::kill)).find("kill") != std::string::npos);
  // The code of `failure`, but not made by it.
  CHECK_FALSE(describe(caf::make_error(caf::sec::runtime_error)).empty());
}
