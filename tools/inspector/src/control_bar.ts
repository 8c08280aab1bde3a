// What a job can be asked to do as a whole. Shown only where the job takes orders.

import type { AppActions, AppState } from "./app_state.js";
import { h, type Child } from "./dom.js";
import { button } from "./views/pieces.js";

const levels = ["trace", "debug", "info", "warn", "error"];

export function controlBar(state: AppState, actions: AppActions): Child {
  const job = state.frame?.job;
  if (!job?.control || !state.isLive || state.connection !== "open") return null;
  const step = (unit: string, name: string) =>
    button(`Step ${name}`, () => actions.control(`Let the job do one ${name}?`, "It pauses again after it.", "step", { unit, count: 1 }), { disabled: !job.is_paused });
  return h(
    "div", { class: "control buttons", role: "toolbar", "aria-label": "control of the job", key: "control" },
    job.is_paused
      ? button("Resume", () => actions.control("Let the job go on?", "It trains on from where it stands.", "resume", {}))
      : button("Pause", () => actions.control("Pause the job?", "Devices finish what is granted to them and then wait. Nothing is lost, and results stay the same bits.", "pause", {})),
    step("microbatch", "microbatch"),
    step("step", "step"),
    button("Snapshot", () => actions.control("Write a snapshot now?", "The state of the newest step goes to disk, if the job has a folder for it.", "snapshot", {})),
    h("label", { key: "level" }, "Log level ", h("select", {
      "aria-label": "log level", value: "",
      onchange: (event: Event) => {
        const chosen = event.currentTarget as HTMLSelectElement;
        const level = chosen.value;
        chosen.value = "";
        if (level !== "") actions.control(`Log from ${level} on?`, "In all processes of the job; rank 0's lines are shown among the events.", "log_level", { level });
      },
    }, h("option", { value: "" }, "…"), levels.map((level) => h("option", { value: level, key: level }, level)))),
  );
}
