// The notation of plans: "2F0" is the forward of microbatch 0 in stage 2, "(0F7;7B3)" two of them as one.

export interface Action {
  stage: number;
  kind: string;
  microbatch: number | null;
  /// Of the mesh, where the notation names one: "0Gtp".
  axis?: string;
}

const pattern = /^(\d+)([A-Z]+)(\d*)([a-z]*)$/;

function parseOne(text: string): Action | null {
  const found = pattern.exec(text);
  if (!found) return null;
  const action: Action = { stage: Number(found[1]), kind: found[2]!, microbatch: found[3] ? Number(found[3]) : null };
  return found[4] ? { ...action, axis: found[4] } : action;
}

/// The actions that a cell of a plan names; none if it is not understood.
export function parseActions(text: string): Action[] {
  const parts = text.startsWith("(") ? text.slice(1, text.lastIndexOf(")")).split(";") : [text];
  const actions = parts.map(parseOne);
  return actions.some((one) => one === null) ? [] : (actions as Action[]);
}

/// What must have ended before `action` begins, by what the action itself says: stages of a chain. A kind of
/// "B" is found as "I" too, where a backward is done in two halves.
export function inputsOf(action: Action, numStages: number): Action[] {
  const { stage, kind, microbatch } = action;
  if (microbatch === null) return [];
  if (kind === "F") return stage > 0 ? [{ stage: stage - 1, kind: "F", microbatch }] : [];
  if (kind === "B" || kind === "I") {
    if (stage + 1 < numStages) return [{ stage: stage + 1, kind: "B", microbatch }];
    return [{ stage, kind: "F", microbatch }];
  }
  if (kind === "W") return [{ stage, kind: "I", microbatch }];
  return [];
}

/// Whether doing `done` produces what `wanted` stands for: a backward's first half sends its result on.
export function produces(done: Action, wanted: Action): boolean {
  if (done.stage !== wanted.stage || done.microbatch !== wanted.microbatch) return false;
  return done.kind === wanted.kind || (wanted.kind === "B" && done.kind === "I") || (wanted.kind === "I" && done.kind === "B");
}

const names: Record<string, string> = {
  F: "forward",
  B: "backward",
  I: "input gradient",
  W: "weight gradient",
  U: "unshard",
  S: "reshard",
  G: "gradient reduction",
  R: "reduction among stages",
  A: "optimizer",
};

/// "2F0" -> "forward of microbatch 0 in stage 2".
export function describeAction(text: string | null): string {
  if (text === null) return "nothing of the plan";
  const actions = parseActions(text);
  if (actions.length === 0) return text;
  const describe = (one: Action) => {
    const name = names[one.kind] ?? one.kind;
    return one.microbatch === null ? `${name} of stage ${one.stage}` : `${name} of microbatch ${one.microbatch} in stage ${one.stage}`;
  };
  return actions.map(describe).join(" with ");
}

/// The class of an action for its colour: its kind, fused ones by the first.
export function kindOf(text: string): string {
  const first = parseActions(text)[0];
  if (!first) return "other";
  return { F: "forward", B: "backward", I: "backward", W: "weights" }[first.kind] ?? "other";
}
