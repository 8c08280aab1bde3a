#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// Several optimizer steps between two flushes.
struct step_shape {
  int num_microbatches = 1;  ///< of each optimizer step
  int flush_every = 1;       ///< number of optimizer steps
};

/// Devices that all have the same number of stages, their chunks of the model.
struct chunk_shape {
  int num_devices = 1;
  int num_chunks = 1;  ///< stages of each device
  int num_microbatches = 1;
  int num_stages() const { return num_devices * num_chunks; }
};

/// A schedule that says which device has which stages, and in which order the device runs them all.
///
/// Its orders are those of a chain. They are sound for every stage graph with as many stages, since an edge
/// leads to a higher stage, so that what it waits for comes before in the chain too.
struct chunked_schedule {
  int num_chunks = 0;      ///< of each device; 0: any number
  int default_chunks = 2;  ///< where the user does not say how many stages there are
  int (*device_of)(int stage, int num_devices) = nullptr;
  std::vector<action> (*order)(int device, const chunk_shape& shape) = nullptr;
  /// Why the number of microbatches is not allowed, and which ones are; empty: it is.
  std::string (*objection)(const chunk_shape& shape) = nullptr;
};

/// One schedule that make_plan knows, and where it is from. One of `stage_order`, `steps_order` and `chunked`
/// is set.
struct schedule_row {
  schedule_kind kind = schedule_kind::gpipe;
  std::string_view name;   ///< what users type, as in --schedule
  std::string_view title;  ///< heading of drawings
  /// The order of one stage of a graph, wherever its stages lie. Together the orders have no cycle.
  std::vector<action> (*stage_order)(int stage, const stage_graph& graph, int num_microbatches) = nullptr;
  /// The same of one that is asynchronous: with the As of all its optimizer steps but the last.
  std::vector<action> (*steps_order)(int stage, const stage_graph& graph, const step_shape& shape) = nullptr;
  const chunked_schedule* chunked = nullptr;
};

std::span<const schedule_row> schedule_table();

/// The row of `kind`. Throws std::invalid_argument for schedule_kind::custom, which has none.
const schedule_row& schedule_of(schedule_kind kind);

/// Huang et al. 2019, "GPipe" (arXiv:1811.06965): all forwards, then all backwards.
std::vector<action> gpipe_order(int stage, const stage_graph& graph, int num_microbatches);
/// Narayanan et al. 2020, PipeDream-Flush (arXiv:2006.09503).
std::vector<action> one_f_one_b_order(int stage, const stage_graph& graph, int num_microbatches);
/// The forwards of a step: evaluation and prediction.
std::vector<action> forward_only_order(int stage, const stage_graph& graph, int num_microbatches);
/// Qi et al. 2023, "Zero Bubble Pipeline Parallelism" (arXiv:2401.10241), section 2.1.
std::vector<action> zb_h1_order(int stage, const stage_graph& graph, int num_microbatches);
/// The same, section 2.2.
std::vector<action> zb_h2_order(int stage, const stage_graph& graph, int num_microbatches);
/// Narayanan et al. 2021, "Memory-Efficient Pipeline-Parallel DNN Training" (arXiv:2006.09503), section 3:
/// PipeDream-2BW.
std::vector<action> pipedream_2bw_order(int stage, const stage_graph& graph, const step_shape& shape);
/// Narayanan et al. 2021, "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM"
/// (arXiv:2104.04473), section 2.2.
extern const chunked_schedule interleaved_1f1b_schedule;
/// Where interleaved stages are: stage s on device s mod p.
int round_robin_device(int stage, int num_devices);
/// Lamy-Poirier 2022, "Breadth-First Pipeline Parallelism" (arXiv:2211.05953).
extern const chunked_schedule looped_bfs_schedule;
/// Qi et al. 2023 (arXiv:2401.10241), section 6.
extern const chunked_schedule zb_v_schedule;
/// DeepSeek-AI 2024, "DeepSeek-V3 Technical Report" (arXiv:2412.19437), section 3.2.1, with each device's two
/// directions folded into a V (github.com/deepseek-ai/DualPipe).
extern const chunked_schedule dualpipe_v_schedule;

}  // namespace troupe::schedule
