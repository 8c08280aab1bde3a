#include "troupe/schedule/text/action_label.hpp"

#include <algorithm>

namespace troupe::schedule {

bool several_stages(const std::vector<timed_action>& device) {
  return std::any_of(device.begin(), device.end(), [&device](const timed_action& done) {
    return done.op.stage != device.front().op.stage;
  });
}

std::string fitting_label(const action& op, label_widths widths) {
  auto whole = to_string(op);
  if (whole.size() <= widths.whole) return whole;
  bool has_number = is_of_microbatch(op) || op.kind == action_kind::reduce_gradient;
  auto letter = whole.find_first_not_of("0123456789");
  auto number = has_number ? std::to_string(op.microbatch) : whole.substr(letter, 1);
  return number.size() <= widths.number ? number : "";
}

bool is_odd(const action& op, bool with_stage) { return (with_stage ? op.stage : op.microbatch) % 2 != 0; }

}  // namespace troupe::schedule
