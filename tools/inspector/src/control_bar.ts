// What a job can be asked to do as a whole. Shown only where the job takes commands.

import type { AppActions, AppState } from "./app_state.js";
import { h, type Child } from "./dom.js";
import { button } from "./views/pieces.js";

const levels = ["trace", "debug", "info", "warn", "error"];

export function controlBar(state: AppState, actions: AppActions): Child {
  const job = state.frame?.job;
  if (!job?.control || !state.isLive || state.connection !== "open") return null;
  const level = job.log_level ?? "";
  const step = (unit: string, name: string) => {
    const deed = `Run one ${name}`;
    return button(deed, () => actions.control({ deed, detail: "The job pauses again after it.", action: "step", body: { unit, count: 1 } }), {
      disabled: !job.is_paused, title: job.is_paused ? null : "pause the job first",
    });
  };
  return h(
    "div", { class: "control buttons", role: "toolbar", "aria-label": "control of the job", key: "control" },
    job.is_paused
      ? button("Resume", () => actions.control({ deed: "Resume the job", detail: "It goes on from where it was paused.", action: "resume", body: {} }))
      : button("Pause", () => actions.control({ deed: "Pause the job", detail: "Devices finish the steps that are granted to them, and then wait. No work is lost, and the results stay the same bits.", action: "pause", body: {} })),
    step("microbatch", "microbatch"),
    step("step", "step"),
    button("Snapshot", () => actions.control({ deed: "Write a snapshot", detail: "The state of the next step goes to disk; of a paused job, the newest state. The job needs --snapshot-dir for it.", action: "snapshot", body: {} })),
    h("label", { key: "level" }, "Log level ", h("select", {
      "aria-label": "log level", value: level,
      onchange: (event: Event) => {
        const chosen = event.currentTarget as HTMLSelectElement;
        const wanted = chosen.value;
        chosen.value = level; // until the command is done
        actions.control({ deed: `Set the log level to ${wanted}`, detail: "Of all processes of the job. The view Events shows the lines of rank 0.", action: "log_level", body: { level: wanted } });
      },
    }, levels.includes(level) ? null : h("option", { value: level, key: level, disabled: true }, level || "choose"), levels.map((one) => h("option", { value: one, key: one }, one)))),
  );
}
