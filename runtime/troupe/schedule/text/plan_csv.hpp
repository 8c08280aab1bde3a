#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "troupe/schedule/plan.hpp"

namespace troupe::schedule {

/// What a plan's file does not say.
struct plan_csv_options {
  std::vector<edge> edges = {};            ///< see plan_options::edges; empty: a chain
  std::vector<reduction> reductions = {};  ///< see plan_options::reductions
  layout::mesh_shape mesh = {};
  bool averages_weights = false;                        ///< see schedule::averages_weights
  bool has_equal_replicas = false;                      ///< plan::has_equal_replicas
  std::vector<joint_kind> joint = {};                   ///< see plan_options::joint
  std::vector<int> stages_with_common_parameters = {};  ///< see plan_options
  gather_options gathers = {};                          ///< of stages without Us and Ss
};

/// Reads a plan from the CSV that torch.distributed.pipelining dumps (`_dump_csv`): a line for each rank,
/// here a device, and in each cell an action, such as 2F0, 2B0, 2I0 or 2W0, or nothing. Stages lie on the
/// device that runs them.
///
/// Lines that begin with # are skipped. (0F7;7B3)OVERLAP_F_B is read as its actions, one after the other. Of
/// the form with communication UNSHARD and RESHARD are U and S. What edges and replicas imply is skipped:
/// SEND_F, RECV_F, SEND_B, RECV_B and REDUCE_GRAD. R, G and A are appended as make_plan does. If there are
/// several optimizer steps between two flushes (plan::flush_every), the file has all As, 0A, 0A1 and so on,
/// and Rs and Gs are put before each. The plan's kind is `custom`, or `forward_only` if it computes forwards
/// only.
///
/// Where a device has several stages and there are reductions of several steps, all its stages must have
/// ended a step's gradients before the first of its As.
///
/// Throws bad_input for text in which a cell cannot be read, and for a plan that check_plan refuses. The
/// message names `file`, the line, rank and cell of each action at fault, and the actions that wait in a
/// circle.
plan read_plan_csv(std::string_view text, const std::string& file, const plan_csv_options& options = {});

/// Reads the plan in `file`. `options`: for the number of stages that it has; empty: the default ones. Throws
/// bad_input as read_plan_csv does, and for a file that cannot be read.
plan read_plan_file(const std::filesystem::path& file,
                    const std::function<plan_csv_options(int num_stages)>& options = {});

/// The form that torch.distributed.pipelining loads with `_load_csv(file, format="compute_only")`, or with
/// "compute_comms" if the plan has Us and Ss. The latter has UNSHARD, RESHARD and the REDUCE_GRADs over dp,
/// and of a chain SEND_F, RECV_F, SEND_B and RECV_B where neighbours lie on different devices.
///
/// Other Gs, R and A have no place in it and are left out, comments too, since PyTorch would take them for a
/// rank. The As of a plan with several optimizer steps are written all the same: it means nothing without
/// them, and PyTorch has none.
std::string to_csv(const plan& written);

}  // namespace troupe::schedule
