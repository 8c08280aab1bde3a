// Orders from this page: the reader confirms each, and is told what comes of it.

import type { AppState, Order } from "./app_state.js";
import { confirmed } from "./dialogs.js";
import { sendControl } from "./feed.js";
import type { EventRow } from "./job_events.js";

export class Orders {
  /// Taken by the job and without an outcome, by id.
  private readonly open = new Map<string, Order>();

  /// `say` shows a line: for some seconds, or with `stays` until the next one.
  constructor(private readonly state: AppState, private readonly say: (line: string, stays?: boolean) => void) {}

  /// Asks for a confirmation, and then sends the order.
  async give(order: Order): Promise<void> {
    if (!(await confirmed(order.deed, order.detail, order.action === "kill"))) return;
    try {
      const id = await sendControl(order.action, order.body);
      this.open.set(id, order);
      this.say(`${order.deed}: ordered, not done yet`, true);
      // The event may have come before the answer.
      const ended = this.state.events.findLast((row) => row.order?.id === id);
      if (ended) this.onEvent(ended);
    } catch (problem) {
      this.say(`${order.deed}: refused: ${problem instanceof Error ? problem.message : String(problem)}`);
    }
  }

  /// Takes note of an outcome.
  onEvent({ order: ended }: EventRow): void {
    if (!ended) return;
    const order = this.open.get(ended.id);
    if (order) {
      this.open.delete(ended.id);
      this.say(`${order.deed}: ${ended.outcome}${ended.text === "" ? "" : `: ${ended.text}`}`);
    }
  }
}
