#pragma once
#include <vector>

#include "troupe/job/client_mailbox.hpp"

namespace troupe::testing {

/// Takes all events in the mailbox, without waiting.
inline std::vector<actors::job::client_event> drained(actors::job::client_mailbox& mailbox) {
  static const std::string end = "the end of what is there";
  mailbox.put(actors::job::job_failure{end});
  std::vector<actors::job::client_event> events;
  for (;;) {
    auto event = mailbox.take();
    if (auto* failure = std::get_if<actors::job::job_failure>(&event); failure && failure->cause == end)
      return events;
    events.push_back(std::move(event));
  }
}

}  // namespace troupe::testing
