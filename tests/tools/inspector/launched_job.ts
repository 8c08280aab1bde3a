// Jobs of a GPT of four stages under the launcher. Arguments by environment: TROUPE_PROGRAM, GPT_PROGRAM.

import { spawn, type ChildProcess } from "node:child_process";

export interface LaunchedJob {
  /// The inspector's link, in the launcher's line {"event":"inspector","url":..}. Fails if the job ends before.
  link: Promise<string>;
  /// The SHA-256 of the weights, once the job has ended by itself. Fails if it ends otherwise.
  weights: Promise<string>;
  /// Ends the job, if it has not ended.
  end(): Promise<void>;
}

export function launchJob(processes: number, more: string[]): LaunchedJob {
  const started: ChildProcess = spawn(process.env.TROUPE_PROGRAM!, [
    "launch", "--nproc-per-node", String(processes), "--", process.env.GPT_PROGRAM!, "--stages", "4", "--microbatches", "8", "--json", ...more,
  ], { stdio: ["ignore", "pipe", "pipe"] });
  let out = "";
  let said = "";
  const ended = new Promise<number | null>((resolve) => started.once("exit", resolve));
  const after = (code: number | null) => new Error(`the job ended with ${code}: ${out.slice(-500)}${said.slice(-2000)}`);
  started.stderr!.on("data", (piece) => (said += String(piece)));
  const link = new Promise<string>((resolve, reject) => {
    started.stdout!.on("data", (piece) => {
      out += String(piece);
      const found = /"event":"inspector".*?"url":"([^"]+)"/.exec(out);
      if (found) resolve(found[1]!);
    });
    void ended.then((code) => reject(after(code)));
  });
  const weights = ended.then((code) => {
    const found = /"weights_sha256":"([0-9a-f]+)"/.exec(out);
    if (code === 0 && found) return found[1]!;
    throw after(code);
  });
  // Whoever waits for them is told.
  link.catch(() => undefined);
  weights.catch(() => undefined);
  return {
    link, weights,
    async end() {
      if (started.exitCode === null) started.kill("SIGTERM");
      await ended;
    },
  };
}
