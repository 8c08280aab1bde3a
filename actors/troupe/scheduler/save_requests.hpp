#pragma once
#include <caf/typed_response_promise.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "troupe/messages/scheduler.hpp"

namespace troupe::actors::scheduler {

/// Requests to write a snapshot now (save_snapshot) that have no answer yet.
class save_requests {
 public:
  using promise = caf::typed_response_promise<messages::snapshot_saved>;

  /// `position`: steps done when it came. A snapshot of an earlier step is no answer, unless it is planned
  /// for the request.
  void add(promise answer, std::uint64_t position) { requests_.push_back({std::move(answer), position, {}}); }
  /// Whether some request has no step yet whose snapshot will answer it.
  bool has_unplanned() const;
  /// The snapshot of `step` will answer all that have none yet.
  void plan(std::uint64_t step);

  void on_disk(std::uint64_t step);
  void on_failed(std::uint64_t step, const std::string& why);
  void refuse_all(const std::string& why);

 private:
  struct request {
    promise answer;
    std::uint64_t position = 0;
    std::optional<std::uint64_t> planned;
  };
  std::vector<request> requests_;
};

}  // namespace troupe::actors::scheduler
