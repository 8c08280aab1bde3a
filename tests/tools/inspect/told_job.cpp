#include "tools/inspect/told_job.hpp"

namespace troupe::testing {

job_snapshot told_job() {
  job_snapshot told;
  told.at_ms = 1'700'000'100'000;
  told.parts = nlohmann::ordered_json::parse(R"({
"job": {"job_id": "fa0228400260edac", "world_size": 2, "rank": 0, "generation": 2, "state": "running", "call": 0,
  "call_kind": "train", "step": 1200, "end_step": 100000, "is_stopping": false, "is_paused": false, "loss": 0.4623,
  "steps_per_s": 195.29, "samples_per_s": 12498.8, "updated_ms": 1700000100000,
  "newest_step_ms": 1700000099900, "seconds_left": 506, "learning_rate": 0.00025, "num_recoveries": 1, "recoveries": []},
"findings": {"findings": []},
"processes": {"processes": [{"rank": 0, "cores_waited_for": 0.02}, {"rank": 1, "cores_waited_for": 1.3,
  "memory": {"resident_bytes": 104857600, "current_bytes": 1572864, "peak_bytes": 209715200}}]},
"actors": {"actors": [
  {"id": "0#0/supervisor", "parent": null, "role": "supervisor", "number": 0, "rank": 0, "incarnation": 0,
   "state": "running", "restarts": 0, "reason": null, "mailbox_depth": 3},
  {"id": "0#0/stage/0", "parent": "0#0/supervisor", "role": "stage", "number": 0, "rank": 0, "incarnation": 0,
   "state": "running", "restarts": 0, "reason": null, "mailbox_depth": null},
  {"id": "0#0/device/0", "parent": "0#0/supervisor", "role": "device", "number": 0, "rank": 0, "incarnation": 0,
   "state": "running", "restarts": 2, "reason": "out of \u001b[2Jmemory", "mailbox_depth": 12345, "oldest_message_s": 1.5,
   "handler_p99_s": 0.0021},
  {"id": "1#1/supervisor", "parent": null, "role": "supervisor", "number": 1, "rank": 1, "incarnation": 1,
   "state": "running", "restarts": 0, "reason": null, "mailbox_depth": 0},
  {"id": "1#1/device/1", "parent": "1#1/supervisor", "role": "device", "number": 1, "rank": 1, "incarnation": 1,
   "state": "running", "restarts": 0, "reason": null, "mailbox_depth": null},
  {"id": "1#0/supervisor", "parent": null, "role": "supervisor", "number": 1, "rank": 1, "incarnation": 0,
   "state": "lost", "restarts": 0, "reason": null, "mailbox_depth": null}]},
"devices": {"devices": [
  {"device": 0, "rank": 0, "activity": "waiting_for_tensor", "action": "0B1", "at_position_s": 0.2},
  {"device": 1, "rank": 1, "place": "cuda:0", "activity": "computing", "action": "1F2", "at_position_s": 4.25}]},
"links": {"links": [
  {"from": 0, "to": 1, "bytes_per_s": 20000000.0, "frames_per_s": 12.0, "tensors_in_flight": 2},
  {"from": 1, "to": 0, "bytes_per_s": 999.0, "frames_per_s": 1234.0, "tensors_in_flight": null}]},
"timeline": {"step": null, "measured": null},
"plan": {"plan": null, "simulated": {"unit": "forwards of one microbatch", "makespan": 9.0, "idle": [3.0, 3.0], "devices": [
  [{"action": "0F0", "begin": 0, "end": 1}, {"action": "0F1", "begin": 1, "end": 2}, {"action": "0B0", "begin": 4, "end": 6},
   {"action": "0B1", "begin": 7, "end": 9}],
  [{"action": "1F0", "begin": 1, "end": 2}, {"action": "1B0", "begin": 2, "end": 4}, {"action": "1F1", "begin": 4, "end": 5},
   {"action": "1B1", "begin": 5, "end": 7}]]}},
"metrics": {"oldest": 1, "missed": 0, "steps": [
  {"step": 1198, "loss": 0.5, "step_s": 0.005, "busy_s": 0.004}, {"step": 1199, "loss": 0.48, "step_s": 0.006, "busy_s": 0.004},
  {"step": 1200, "loss": 0.4623, "step_s": 0.0055, "busy_s": 0.0041}]},
"log": {"lines": [
  {"number": 1, "at_ms": 1700000040000, "level": "warning", "text": "actor failed actor=\"device 0\""},
  {"number": 2, "at_ms": 1700000099000, "level": "error", "text": "no progress"}]}
})");
  return told;
}

job_snapshot told_job_with_finding() {
  auto told = told_job();
  told.parts["findings"]["findings"].push_back(
      {{"kind", "stuck_rank"},
       {"actor", "1#1/device/1"},
       {"rank", 1},
       {"device", 1},
       {"text",
        "device 1 does not return from 1F2 of step 1200: device 0 waits for 1B1 of device 1 since 4.0 s"},
       {"since_ms", told.at_ms - 4250},
       {"seen_ms", told.at_ms}});
  return told;
}

}  // namespace troupe::testing
