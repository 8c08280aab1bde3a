#pragma once
#include <chrono>
#include <nlohmann/json.hpp>

#include "inspect/inspector_address.hpp"
#include "inspect/orders/job_order.hpp"
#include "troupe/http/http_client.hpp"

namespace troupe {

/// Gives orders to an inspector. Blocks. For one thread at a time.
class order_client {
 public:
  explicit order_client(inspector_address at)
      : client_({.host = at.host, .port = at.port, .timeout = std::chrono::seconds(5)}), at_(std::move(at)) {}

  /// Sends the order, once: that nobody answers is an answer with status 0.
  order_answer send(const job_order& order);
  /// The rows of /api/v1/orders. Throws http_failure if nobody answers, inspector_refusal if the answer is
  /// none of an inspector that tells outcomes.
  nlohmann::ordered_json orders();

 private:
  http_client client_;
  inspector_address at_;
};

}  // namespace troupe
