#include "actors/inspector/shown_job.hpp"

namespace troupe::testing {

actors::messages::process_report report_of_rank(int rank, std::uint32_t incarnation) {
  actors::messages::process_report report;
  report.generation = 2;
  report.rank = rank;
  report.incarnation = incarnation;
  report.pid = 100 + rank;
  report.host = "<b>host";
  report.phase = 3;
  report.children = {{{actors::actor::child_role::stage, rank}, 1, 1, ""},
                     {{actors::actor::child_role::device, rank}, 1, 3, "out of memory"},
                     {{actors::actor::child_role::loader}, 0, 1, "\xff"}};
  actors::messages::execution_position position{1, actors::job::call_kind::train,
                                                schedule::device_activity::computing, 6, 2};
  report.devices = {{static_cast<std::uint32_t>(rank), position, 0.5}};
  report.device_memory = {
      {rank, rank == 0 ? "cpu" : "cuda:0", 4000, 5000, rank == 0 ? 0u : 8000u, rank == 0 ? 0u : 700u}};
  report.supervisor = {1, 0.02, 0, 50, 60, 700, 800, 0.004, {10, 20, 20}};
  report.children[1].counts = {3, 0.25, 0.5, 100, 90, 0, 1200, 2, {0, 0, 50, 0, 50}};
  transport::peer_statistics with_other;
  with_other.frames_sent = 5;
  with_other.frame_bytes_sent = 700;
  with_other.frame_bytes_queued = 30;
  with_other.tensors_sent = 10;
  with_other.tensor_bytes_sent = 1000;
  with_other.tensors_in_flight = 2;
  with_other.tensor_bytes_in_flight = 200;
  with_other.tensors_received = 8;
  report.peers = {{1 - rank, with_other}};
  report.tensor_bytes_sent = 1000;
  report.tensor_bytes_shared = 600;
  report.tensors_sent = 10;
  return report;
}

actors::messages::scheduler_report running_job() {
  auto job = std::make_shared<actors::job::job_definition>();
  plan_options options;
  options.num_stages = options.num_devices = 2;
  options.num_microbatches = 4;
  job->training = make_plan(options);
  job->snapshots.folder = "/snapshots";
  job->learning_rate = [](std::uint64_t step) { return step == 6 ? 0.5 : 0.125; };
  actors::messages::scheduler_report report;
  report.generation = 2;
  report.phase = 3;
  report.call = 1;
  report.kind = actors::job::call_kind::train;
  report.step = 7;
  report.end_step = 20;
  report.committed_step = 6;
  report.step_on_disk = 5;
  report.job = job;
  report.hosts = mesh::hosting(std::vector<world_rank>{{0}, {1}});
  report.steps = {2, 0, {{6, 1000, 0.5, 32, 0.25, 0.2, 0.1, 0}, {7, 1250, 0.25, 32, 0.25, 0.2, 0.1, 0.01}}};
  return report;
}

actors::inspector::job_view shown_job() {
  actors::inspector::job_view view;
  view.world_size = 2;
  view.history.started_ms = 500;
  view.at_ms = 2000;
  view.generation = 2;
  view.processes[0] = {report_of_rank(0), 1990};
  view.processes[1] = {report_of_rank(1, 1), 1995};
  view.replaced.push_back({report_of_rank(1), 900});
  cluster::recovery_report recovery;
  recovery.generation = 2;
  recovery.loss = {1, "killed by SIGKILL"};
  recovery.total_s = 0.07;
  view.history.add({recovery, 1000});
  view.scheduler = running_job();
  auto trained = std::make_shared<actors::job::call_result>();
  trained->steps_done = 4;
  trained->last_step = {{0, 0, 0, action_kind::forward, 1'000'000, 2'000'000},
                        {1, 1, 0, action_kind::forward, 2'000'000, 4'000'000}};
  view.last_training = trained;
  view.steps_per_s = 4;
  view.findings = {
      {actors::inspector::finding_kind::stuck_rank, 1, -1, "", "device 1 does not return", 1000, 2000}};
  return view;
}

}  // namespace troupe::testing
