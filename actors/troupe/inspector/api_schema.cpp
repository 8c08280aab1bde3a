#include "troupe/inspector/views.hpp"

namespace troupe {

const char* api_schema() {
  return R"schema({
"$schema": "https://json-schema.org/draft/2020-12/schema",
"title": "Answers of Troupe's inspector, version 1: #/$defs/NAME is that of /api/v1/NAME",
"$defs": {
"count": {"type": "integer", "minimum": 0},
"time_ms": {"type": "integer", "description": "Unix time in milliseconds"},
"job": {"type": "object", "additionalProperties": false,
  "required": ["job_id", "world_size", "rank", "generation", "started_ms", "updated_ms", "state", "call", "call_kind",
    "step", "end_step", "is_stopping", "is_paused", "stands", "control", "loss", "steps_per_s", "samples_per_s", "num_recoveries", "recoveries"],
  "properties": {
    "job_id": {"type": "string"}, "world_size": {"type": "integer", "minimum": 1},
    "rank": {"type": "integer", "description": "where the inspector runs"}, "generation": {"$ref": "#/$defs/count"},
    "started_ms": {"$ref": "#/$defs/time_ms"}, "updated_ms": {"$ref": "#/$defs/time_ms"},
    "state": {"enum": ["gathering", "finding", "restoring", "running", null]},
    "call": {"type": ["integer", "null"]}, "call_kind": {"type": ["string", "null"]},
    "step": {"type": ["integer", "null"], "description": "optimizer steps done"},
    "end_step": {"type": ["integer", "null"], "description": "optimizer steps done when the running call ends"},
    "is_stopping": {"type": "boolean"}, "is_paused": {"type": "boolean"},
    "stands": {"type": "boolean", "description": "the job is paused, and all devices have come to where they stop"},
    "control": {"type": "boolean", "description": "the job takes orders at /api/v1/control/"},
    "loss": {"type": ["number", "null"]}, "steps_per_s": {"type": ["number", "null"]},
    "samples_per_s": {"type": ["number", "null"]}, "num_recoveries": {"$ref": "#/$defs/count"},
    "recoveries": {"type": "array", "maxItems": 64, "items": {"type": "object", "additionalProperties": false,
      "required": ["at_ms", "generation", "rank", "cause", "total_s"],
      "properties": {
        "at_ms": {"$ref": "#/$defs/time_ms"}, "generation": {"$ref": "#/$defs/count"},
        "rank": {"type": "integer", "description": "-1: no process was lost"}, "cause": {"type": "string"},
        "detect_s": {"type": "number"}, "fence_s": {"type": "number"}, "quiesce_s": {"type": "number"},
        "respawn_s": {"type": "number"}, "restore_s": {"type": "number"}, "rebuild_s": {"type": "number"},
        "replay_s": {"type": "number"}, "total_s": {"type": "number"}}}}}},
"node": {"type": "object", "additionalProperties": false,
  "required": ["rank", "incarnation", "pid", "host", "state", "generation", "reported_ms", "unanswered_polls"],
  "properties": {
    "rank": {"$ref": "#/$defs/count"}, "incarnation": {"$ref": "#/$defs/count"}, "pid": {"type": "integer"},
    "host": {"type": "string"}, "state": {"enum": ["joining", "quiescing", "waiting", "active", "lost"]},
    "generation": {"$ref": "#/$defs/count"}, "reported_ms": {"$ref": "#/$defs/time_ms"},
    "unanswered_polls": {"$ref": "#/$defs/count"}}},
"nodes": {"type": "object", "additionalProperties": false, "required": ["nodes", "replaced"],
  "properties": {
    "nodes": {"type": "array", "items": {"$ref": "#/$defs/node"}},
    "replaced": {"type": "array", "maxItems": 64, "items": {"$ref": "#/$defs/node"}}}},
"devices": {"type": "object", "additionalProperties": false, "required": ["devices"],
  "properties": {"devices": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["device", "rank", "activity", "call", "call_kind", "run", "position", "action", "at_position_s"],
    "properties": {
      "device": {"$ref": "#/$defs/count"}, "rank": {"$ref": "#/$defs/count"},
      "activity": {"enum": ["idle", "computing", "applying", "waiting_for_tensor", "waiting_for_samples"]},
      "call": {"$ref": "#/$defs/count"}, "call_kind": {"type": "string"},
      "run": {"type": "integer", "minimum": 0, "description": "runs of the plan, or batches, that come before"},
      "position": {"type": "integer", "minimum": 0, "description": "index in the device's list of actions"},
      "action": {"type": ["string", "null"]}, "at_position_s": {"type": "number", "minimum": 0}}}}}},
"actors": {"type": "object", "additionalProperties": false, "required": ["actors"],
  "properties": {"actors": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["id", "parent", "role", "number", "rank", "incarnation", "state", "restarts", "reason", "mailbox_depth"],
    "properties": {
      "id": {"type": "string"}, "parent": {"type": ["string", "null"]},
      "role": {"enum": ["supervisor", "loader", "replica_keeper", "disk", "disk_writer", "stage", "device",
        "scheduler", "gatherer", "inspector"]},
      "number": {"$ref": "#/$defs/count"}, "rank": {"$ref": "#/$defs/count"},
      "incarnation": {"type": "integer", "minimum": 0, "description": "of its process"},
      "state": {"enum": ["running", "ended", "lost"]},
      "restarts": {"$ref": "#/$defs/count"}, "reason": {"type": ["string", "null"], "description": "of its newest failure"},
      "mailbox_depth": {"type": ["integer", "null"], "description": "null: not counted"}}}}}},
"links": {"type": "object", "additionalProperties": false, "required": ["links"],
  "properties": {"links": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["rank", "peers", "tensors_sent", "tensors_received", "tensor_bytes_sent", "tensor_bytes_received",
      "control_frames_sent", "control_frames_received", "stale_frames", "bad_frames", "bytes_sent_per_s",
      "bytes_received_per_s", "tensors_sent_per_s", "tensors_received_per_s"],
    "properties": {
      "rank": {"$ref": "#/$defs/count"}, "peers": {"enum": ["all"], "description": "of all its connections together"},
      "tensors_sent": {"$ref": "#/$defs/count"}, "tensors_received": {"$ref": "#/$defs/count"},
      "tensor_bytes_sent": {"$ref": "#/$defs/count"}, "tensor_bytes_received": {"$ref": "#/$defs/count"},
      "control_frames_sent": {"$ref": "#/$defs/count"}, "control_frames_received": {"$ref": "#/$defs/count"},
      "stale_frames": {"$ref": "#/$defs/count"}, "bad_frames": {"$ref": "#/$defs/count"},
      "bytes_sent_per_s": {"type": "number"}, "bytes_received_per_s": {"type": "number"},
      "tensors_sent_per_s": {"type": "number"}, "tensors_received_per_s": {"type": "number"}}}}}},
"timeline_of_devices": {"type": ["object", "null"], "additionalProperties": false,
  "required": ["unit", "makespan", "idle", "devices"],
  "properties": {
    "unit": {"type": "string"}, "makespan": {"type": "number"},
    "idle": {"type": "array", "items": {"type": "number"}},
    "devices": {"type": "array", "items": {"type": "array", "items": {"type": "object", "additionalProperties": false,
      "required": ["action", "begin", "end"],
      "properties": {"action": {"type": "string"}, "begin": {"type": "number"}, "end": {"type": "number"}}}}}}},
"plan": {"type": "object", "additionalProperties": false, "required": ["plan", "simulated"],
  "properties": {
    "plan": {"type": ["object", "null"], "additionalProperties": false,
      "required": ["schedule", "num_stages", "num_microbatches", "steps_per_run", "devices"],
      "properties": {
        "schedule": {"type": "string"}, "num_stages": {"$ref": "#/$defs/count"},
        "num_microbatches": {"$ref": "#/$defs/count"}, "steps_per_run": {"type": "integer", "minimum": 1},
        "devices": {"type": "array", "items": {"type": "object", "additionalProperties": false,
          "required": ["device", "rank", "stages", "actions"],
          "properties": {
            "device": {"$ref": "#/$defs/count"}, "rank": {"type": ["integer", "null"]},
            "stages": {"type": "array", "items": {"type": "integer"}},
            "actions": {"type": "array", "items": {"type": "string"}}}}}}},
    "simulated": {"$ref": "#/$defs/timeline_of_devices"}}},
"timeline": {"type": "object", "additionalProperties": false, "required": ["step", "measured"],
  "properties": {
    "step": {"type": ["integer", "null"], "description": "the newest that all devices described: about four a second, and the last of a call"},
    "measured": {"$ref": "#/$defs/timeline_of_devices"}}},
"metrics": {"type": "object", "additionalProperties": false, "required": ["oldest", "missed", "steps"],
  "properties": {
    "oldest": {"type": ["integer", "null"], "description": "the oldest step that is kept"},
    "missed": {"$ref": "#/$defs/count"},
    "steps": {"type": "array", "maxItems": 10000, "items": {"type": "object", "additionalProperties": false,
      "required": ["step", "at_ms", "loss", "num_samples", "step_s", "span_s", "busy_s", "copy_s"],
      "properties": {
        "step": {"$ref": "#/$defs/count"}, "at_ms": {"$ref": "#/$defs/time_ms"}, "loss": {"type": ["number", "null"]},
        "num_samples": {"$ref": "#/$defs/count"}, "step_s": {"type": "number"}, "span_s": {"type": "number"},
        "busy_s": {"type": "number"}, "copy_s": {"type": "number"}}}}}},
"findings": {"type": "object", "additionalProperties": false, "required": ["findings"],
  "properties": {"findings": {"type": "array", "items": {"type": "object", "additionalProperties": false,
    "required": ["kind", "actor", "rank", "device", "text", "since_ms", "seen_ms"],
    "properties": {
      "kind": {"enum": ["stuck_rank", "stopped_process", "straggler", "unbalanced_partition", "missing_in_collective",
        "growing_mailbox", "link_errors"]},
      "actor": {"type": ["string", "null"], "description": "the id of the culprit in actors"},
      "rank": {"type": ["integer", "null"]}, "device": {"type": ["integer", "null"]}, "text": {"type": "string"},
      "since_ms": {"$ref": "#/$defs/time_ms"}, "seen_ms": {"$ref": "#/$defs/time_ms"}}}}}},
"snapshots": {"type": "object", "additionalProperties": false,
  "required": ["folder", "committed_step", "step_on_disk", "pending"],
  "properties": {
    "folder": {"type": ["string", "null"]},
    "committed_step": {"type": ["integer", "null"], "description": "the newest step that survives the loss of a process"},
    "step_on_disk": {"type": ["integer", "null"]}, "pending": {"$ref": "#/$defs/count"}}},
"log": {"type": "object", "additionalProperties": false, "required": ["lines"],
  "properties": {"lines": {"type": "array", "maxItems": 500, "items": {"type": "object", "additionalProperties": false,
    "required": ["number", "at_ms", "level", "text"],
    "properties": {
      "number": {"type": "integer", "minimum": 1}, "at_ms": {"$ref": "#/$defs/time_ms"},
      "level": {"type": "string"}, "text": {"type": "string"}}}}}}
}
}
)schema";
}

}  // namespace troupe
