#pragma once
#include <caf/error.hpp>
#include <exception>
#include <string>

namespace troupe {

/// The one place where exceptions become errors between actors: caf::sec::runtime_error with the exception's
/// text, caf::sec::invalid_argument for bad_input. The actor ends with it.
caf::error failure_from(const std::exception_ptr& thrown);
/// An answer, caf::sec::unavailable_or_would_block: the actor that was asked lives on, and has not what is
/// wanted.
caf::error failure(const std::string& what);
/// Whether it was bad_input: trying again does not help.
bool is_bad_input(const caf::error& problem);
/// Whether the actor that was asked has ended instead of answering. Its supervisor hears of that by itself.
bool has_ended(const caf::error& problem);

/// The text of an error made by the above; CAF's own rendering for others.
std::string describe(const caf::error& problem);

}  // namespace troupe
