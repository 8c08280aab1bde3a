#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "troupe/inspector/orders/control_order.hpp"
#include "troupe/inspector/views/job_view.hpp"

namespace troupe {

/// What the job's processes can be ordered to do, constant.
struct control_rules {
  bool has_launcher = false;        ///< a lost process is replaced
  std::optional<int> max_restarts;  ///< of the launcher; none: not known
};

/// Whom an order is for.
struct order_target {
  int rank = -1;                     ///< -1: the job
  std::uint32_t incarnation = 0;     ///< of the process: one that replaces it is not meant
  std::optional<std::uint8_t> role;  ///< child_role of the actor; none: the process
  std::int32_t number = 0;           ///< child_report::number
  std::int32_t replica = 0;          ///< child_report::replica
  bool operator==(const order_target&) const = default;
};

/// "the process of rank 1", "device 1 of rank 1", "the job"
std::string to_string(const order_target& target);

/// Finds an order's target in what is known of the job. Refuses an order that can never be carried out (404:
/// there is no such target, 409: it cannot be done to it), with what to do.
std::variant<order_target, control_refusal> target_of(const control_order& order, const job_view& view,
                                                      const control_rules& rules);

/// Why an order that ends an actor or process must wait, since the job might not survive it now; empty: it
/// need not. `report`: the newest of this generation; null: there is none.
std::string reason_to_wait(const order_target& target, const scheduler_report* report, int world_size);

}  // namespace troupe
