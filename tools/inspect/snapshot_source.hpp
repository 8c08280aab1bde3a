#pragma once
#include <chrono>
#include <stdexcept>
#include <string>

#include "inspect/inspector_address.hpp"
#include "inspect/job_snapshot.hpp"
#include "troupe/http/http_client.hpp"

namespace troupe {

/// An inspector refuses to answer: another token, or another program.
class inspector_refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Why an answer with a status other than 200 is none.
inspector_refusal refused_answer(const std::string& part, const http::http_answer& answer);

/// Asks an inspector for snapshots of its job. Blocks. For one thread at a time.
class snapshot_source {
 public:
  explicit snapshot_source(inspector_address address)
      : client_({.host = address.host, .port = address.port, .timeout = std::chrono::seconds(2)}),
        address_(std::move(address)) {}

  /// All parts. Throws http_failure if nobody answers, inspector_refusal if the answer is none of an
  /// inspector's.
  job_snapshot read();
  /// Throws inspector_refusal if nobody gathers any more what it shows, and as read().
  void require_fresh();

 private:
  http::http_client client_;
  inspector_address address_;
};

}  // namespace troupe
