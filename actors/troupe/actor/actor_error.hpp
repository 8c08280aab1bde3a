#pragma once
#include <caf/error.hpp>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

namespace troupe::actors::actor {

/// Codes of the errors that actors of this project send to each other. Each error carries a text. The codes
/// have a category of their own, so CAF's own errors (caf::sec) never compare equal to them.
enum class actor_error : std::uint8_t {
  bad_input = 1,    ///< the user's input is wrong; the actor ends with this error, a retry does not help
  failed = 2,       ///< any other exception; the actor ends with this error
  unavailable = 3,  ///< a reply: the requested data does not exist here; the replying actor lives on
  lost = 4,         ///< an actor of another process: its process is lost, or a new generation has begun
  timed_out = 5,    ///< an actor of another process has not replied within the link's time limit
  device_lost = 6  ///< troupe::device_lost: the actor ends with this error, and no other of its process helps
};

caf::error make_error(actor_error code, const std::string& text);
bool operator==(const caf::error& problem, actor_error code);
/// None: no error of this project.
std::optional<actor_error> code_of(const caf::error& problem);

/// The one place where exceptions become errors between actors: actor_error::bad_input for bad_input,
/// device_lost for that, else actor_error::failed, with the exception's text.
caf::error error_from(const std::exception_ptr& thrown);
/// actor_error::unavailable
caf::error unavailable(const std::string& what);
/// Whether the code is actor_error::bad_input: a retry does not help.
bool is_bad_input(const caf::error& problem);
/// Whether the receiver of a request ended before it replied. Its supervisor gets a down message of its own.
bool has_ended(const caf::error& problem);

/// The text of an error of this project; CAF's rendering of any other error.
std::string describe(const caf::error& problem);

}  // namespace troupe::actors::actor
