// Commands from this page: the reader confirms each, and is told what comes of it.

import type { AppState, Command } from "./app_state.js";
import { confirmed } from "./dialogs.js";
import { sendControl } from "./feed.js";
import type { EventRow } from "./job_events.js";

export class Commands {
  /// Taken by the job and without an outcome, by id.
  private readonly open = new Map<string, Command>();

  /// `say` shows a line: for some seconds, or with `stays` until the next one.
  constructor(private readonly state: AppState, private readonly say: (line: string, stays?: boolean) => void) {}

  /// Asks for a confirmation, and then sends the command.
  async give(command: Command): Promise<void> {
    if (!(await confirmed(command.deed, command.detail, command.action === "kill"))) return;
    try {
      const id = await sendControl(command.action, command.body);
      this.open.set(id, command);
      this.say(`${command.deed}: taken, not done yet`, true);
      // The event may have come before the answer.
      const ended = this.state.events.findLast((row) => row.command?.id === id);
      if (ended) this.onEvent(ended);
    } catch (problem) {
      this.say(`${command.deed}: refused: ${problem instanceof Error ? problem.message : String(problem)}`);
    }
  }

  /// Takes note of an outcome.
  onEvent({ command: ended }: EventRow): void {
    if (!ended) return;
    const command = this.open.get(ended.id);
    if (command) {
      this.open.delete(ended.id);
      this.say(`${command.deed}: ${ended.outcome}${ended.text === "" ? "" : `: ${ended.text}`}`);
    }
  }
}
