#include "troupe/actor/actor_error.hpp"

#include <caf/exit_reason.hpp>
#include <caf/sec.hpp>
#include <catch2/catch_test_macros.hpp>
#include <stdexcept>
#include <string>

#include "troupe/error/errors.hpp"

using namespace troupe;
using namespace troupe::actors::actor;

namespace {

template <class Thrown>
std::string described(const Thrown& thrown) {
  return describe(error_from(std::make_exception_ptr(thrown)));
}

}  // namespace

TEST_CASE("an exception becomes an error with its text") {
  auto problem = error_from(std::make_exception_ptr(std::runtime_error("disk full")));
  CHECK(problem == actor_error::failed);
  CHECK(describe(problem) == "disk full");
  CHECK(described(std::logic_error("")) == "");
}

TEST_CASE("an ended actor gives another error than an actor that answers with an error") {
  CHECK(has_ended(error_from(std::make_exception_ptr(std::runtime_error("no memory")))));
  CHECK(has_ended(error_from(std::make_exception_ptr(bad_input("no such class")))));
  CHECK(has_ended(caf::make_error(caf::sec::request_receiver_down)));
  CHECK_FALSE(has_ended(unavailable("no such copy")));
  CHECK_FALSE(has_ended(caf::make_error(caf::sec::request_timeout)));
  CHECK(describe(unavailable("no such copy")) == "no such copy");
}

TEST_CASE("an exception that is no std::exception is described as unknown") {
  CHECK(described(42) == "an exception that is no std::exception");
}

TEST_CASE("errors of CAF are described in its own words") {
  CHECK(describe(caf::make_error(caf::sec::request_timeout)).find("request_timeout") != std::string::npos);
  CHECK(describe(caf::make_error(caf::exit_reason::kill)).find("kill") != std::string::npos);
}

TEST_CASE("an error from inside CAF is not taken for an actor_error, whatever its code and text") {
  for (auto code : {caf::sec::invalid_argument, caf::sec::runtime_error, caf::sec::unavailable_or_would_block,
                    static_cast<caf::sec>(actor_error::bad_input)}) {
    auto problem = caf::make_error(code, "CAF's own text");
    CHECK_FALSE(is_bad_input(problem));
    CHECK_FALSE(has_ended(problem));
    CHECK_FALSE(problem == actor_error::unavailable);
    CHECK(describe(problem).find("CAF's own text") != std::string::npos);
    CHECK(describe(problem) != "CAF's own text");
  }
  CHECK_FALSE(is_bad_input(caf::error()));
}
