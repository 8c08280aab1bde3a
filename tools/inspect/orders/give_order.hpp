#pragma once
#include "inspect/inspector_address.hpp"
#include "inspect/orders/job_order.hpp"

namespace troupe {

enum class outcome_form : std::uint8_t { text, json };

/// Asks the user on this terminal whether to do what the order does. Throws bad_input if there is no terminal
/// to ask on.
bool is_confirmed(const job_order& order);

/// Sends an order, waits for its outcome and prints it. Returns the exit code: 0 it is done, 1 it is not, 2
/// the job could not be asked what came of it. Throws http_failure or inspector_refusal if nobody answers
/// before the order is sent.
int give_order(const inspector_address& at, const job_order& order, outcome_form form);

}  // namespace troupe
