#include "troupe/schedule/simulation/closed_form.hpp"

#include <algorithm>
#include <tuple>

#include "troupe/error/errors.hpp"

namespace troupe::schedule {
namespace {

/// Of every device, until the last one is done. With B = b + w:
///
/// | schedule | idle time | exact if |
/// |---|---|---|
/// | GPipe, 1F1B | (p-1)(f+B) | |
/// | PipeDream-2BW | (p-1)(f+B) | steps of p-1 microbatches or more, between which A takes no time |
/// | interleaved 1F1B | (p-1)(f+B) | p divides m |
/// | looped BFS | (p-1)(f+B) | m >= p |
/// | ZB-H1 | (p-1) max(b, f+b-w) | w <= b <= f+w, m >= p |
/// | ZB-H2 | (p-1) max(f, b-f, f+b-2w) | w <= b <= f+w, m >= 2p-1 |
/// | ZB-V | (p-1) max(f, b) | f = b = w, m >= 2p-1 |
/// | DualPipeV | (p-1) max(f, 2b-w) | f = b = w |
///
/// f, b and w are those of one chunk. The paper has (p-1)(f+b-w) for ZB-H1; that takes w <= f, since the
/// first device, with p microbatches begun, waits (p-1)b for the first gradient.
double idle_time(schedule_kind kind, double p, const action_costs& costs) {
  auto [f, b, w] = std::tuple(costs.forward, costs.input_gradient, costs.weight_gradient);
  switch (kind) {
    case schedule_kind::gpipe:
    case schedule_kind::one_f_one_b:
    case schedule_kind::interleaved_1f1b:
    case schedule_kind::pipedream_2bw:
    case schedule_kind::looped_bfs:
      return (p - 1) * (f + b + w);
    case schedule_kind::forward_only:
      return (p - 1) * f;
    case schedule_kind::zb_h1:
      return (p - 1) * std::max(b, f + b - w);
    case schedule_kind::zb_h2:
      return (p - 1) * std::max({f, b - f, f + b - 2 * w});
    case schedule_kind::zb_v:
      return (p - 1) * std::max(f, b);
    case schedule_kind::dualpipe_v:
      return (p - 1) * std::max(f, 2 * b - w);
    case schedule_kind::custom:
      break;
  }
  throw_invalid("closed_form_of", "a schedule that has a generator", std::string(to_string(kind)));
}

/// In chunks, exact for every number of microbatches m that the kind allows; of PipeDream-2BW for optimizer
/// steps of p-1 microbatches or more.
int peak_chunks(schedule_kind kind, const chunk_shape& shape) {
  auto [p, v, m] = shape;
  switch (kind) {
    case schedule_kind::one_f_one_b:
    case schedule_kind::pipedream_2bw:
    case schedule_kind::zb_h1:
      return std::min(m, p);
    case schedule_kind::zb_h2:
      return std::min(m, 2 * p - 1);
    case schedule_kind::interleaved_1f1b:
      return std::min(v * m, v * p + p - 1);
    case schedule_kind::looped_bfs:
      return v * m;
    case schedule_kind::zb_v:
      return std::min(2 * m, 2 * p);
    case schedule_kind::dualpipe_v:
      return 2 * p + 1;
    case schedule_kind::forward_only:
      return 0;
    case schedule_kind::gpipe:
    case schedule_kind::custom:
      break;
  }
  return m;
}

}  // namespace

closed_form closed_form_of(schedule_kind kind, const chunk_shape& shape, const action_costs& costs) {
  bool is_training = kind != schedule_kind::forward_only;
  double round = costs.forward + (is_training ? costs.input_gradient + costs.weight_gradient : 0);
  double work = shape.num_chunks * (shape.num_microbatches * round + (is_training ? costs.apply : 0));
  return {work + idle_time(kind, shape.num_devices, costs), peak_chunks(kind, shape)};
}

}  // namespace troupe::schedule
