#include "troupe/inspector/orders/order_outcome.hpp"

namespace troupe {

std::string_view to_string(order_result result) {
  switch (result) {
    case order_result::done:
      return "done";
    case order_result::refused:
      return "refused";
    case order_result::failed:
      return "failed";
    case order_result::timed_out:
      return "timed_out";
    case order_result::lost:
      return "lost";
  }
  return "unknown";
}

}  // namespace troupe
