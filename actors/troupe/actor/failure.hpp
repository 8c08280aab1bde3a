#pragma once
#include <caf/error.hpp>
#include <cstdint>
#include <exception>
#include <string>

namespace troupe {

/// What actors of this project tell each other of failures. CAF's own errors (caf::sec) are kept apart: one
/// that comes from inside CAF is never taken for one of these. Each carries a text.
enum class actor_error : std::uint8_t {
  bad_input = 1,   ///< the user's input is at fault: trying again does not help; the actor ends with it
  failed = 2,      ///< another exception; the actor ends with it
  unavailable = 3  ///< an answer: the actor that was asked lives on, and does not have what is wanted
};

caf::error make_error(actor_error code, const std::string& text);
bool operator==(const caf::error& problem, actor_error code);

/// The one place where exceptions become errors between actors: actor_error::bad_input for bad_input, else
/// actor_error::failed, with the exception's text.
caf::error failure_from(const std::exception_ptr& thrown);
/// actor_error::unavailable
caf::error failure(const std::string& what);
/// Whether it was bad_input: trying again does not help.
bool is_bad_input(const caf::error& problem);
/// Whether the actor that was asked has ended instead of answering. Its supervisor hears of that by itself.
bool has_ended(const caf::error& problem);

/// The text of an error made by the above; CAF's own rendering for others.
std::string describe(const caf::error& problem);

}  // namespace troupe
