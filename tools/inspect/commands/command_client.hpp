#pragma once
#include <chrono>
#include <nlohmann/json.hpp>

#include "inspect/commands/job_command.hpp"
#include "inspect/inspector_address.hpp"
#include "troupe/http/http_client.hpp"

namespace troupe {

/// Gives commands to an inspector. Blocks. For one thread at a time.
class command_client {
 public:
  explicit command_client(inspector_address address)
      : client_({.host = address.host, .port = address.port, .timeout = std::chrono::seconds(5)}),
        address_(std::move(address)) {}

  /// Sends the command, once: that nobody answers is an answer with status 0.
  command_answer send(const job_command& command);
  /// The rows of /api/v1/commands. Throws http_failure if nobody answers, inspector_refusal if the answer is
  /// none of an inspector that tells outcomes.
  nlohmann::ordered_json commands();

 private:
  http::http_client client_;
  inspector_address address_;
};

}  // namespace troupe
