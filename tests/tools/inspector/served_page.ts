// Serves the bundled page with a made-up job behind it: any size, any state, no processes.

import { createServer, type Server, type ServerResponse } from "node:http";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { AddressInfo } from "node:net";
import type { Finding, Frame } from "../../../tools/inspector/src/api.js";

export const token = "a-token-for-tests";
const cookie = "troupe_test=session";
// As runtime/troupe/http sends it.
const contentPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

export interface ServedPage {
  url: string;
  frame: Frame;
  findings: Finding[] | null;
  /// What was sent to /api/v1/control/. The command at index N has the id "0-N"; its outcome is an event that the test emits.
  commands: { action: string; body: unknown }[];
  refuseCommands: string | null;
  emit(kind: string, data: unknown): void;
  close(): Promise<void>;
}

function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" });
  response.end(JSON.stringify(value));
}

export async function servePage(pageDir: string, sourceDir: string, frame: Frame): Promise<ServedPage> {
  const files: Record<string, [string, string]> = {
    "/": ["text/html; charset=utf-8", join(sourceDir, "tools/inspector/src/index.html")],
    "/page.js": ["text/javascript; charset=utf-8", join(pageDir, "page.js")],
    "/page.css": ["text/css; charset=utf-8", join(pageDir, "page.css")],
  };
  const streams = new Set<ServerResponse>();
  let numEvents = 0;
  const past: string[] = [];
  const served: ServedPage = {
    url: "", frame, findings: null, commands: [], refuseCommands: null,
    emit(kind, data) {
      past.push(`id: ${++numEvents}\nevent: ${kind}\ndata: ${JSON.stringify(data)}\n\n`);
      for (const one of streams) one.write(past[past.length - 1]);
    },
    close: () => new Promise((resolve) => {
      for (const one of streams) one.destroy();
      server.closeAllConnections();
      server.close(() => resolve());
    }),
  };
  const answers: Record<string, () => unknown> = {
    job: () => served.frame.job,
    processes: () => ({ processes: served.frame.processes, replaced: served.frame.replaced }),
    devices: () => ({ devices: served.frame.devices }),
    actors: () => ({ actors: served.frame.actors }),
    links: () => ({ links: served.frame.links, totals: served.frame.linkTotals }),
    plan: () => ({ plan: served.frame.plan, simulated: served.frame.simulated }),
    timeline: () => ({ step: served.frame.measured.step, measured: served.frame.measured.timeline }),
    snapshots: () => served.frame.snapshots,
    metrics: () => ({ oldest: null, missed: 0, steps: [] }),
    log: () => ({ lines: [] }),
  };
  const server: Server = createServer((request, response) => {
    response.setHeader("Content-Security-Policy", contentPolicy);
    response.setHeader("Cache-Control", "no-store");
    const path = (request.url ?? "/").split("?")[0]!;
    const file = files[path];
    if (file) {
      response.writeHead(200, { "Content-Type": file[0] });
      return void response.end(readFileSync(file[1]));
    }
    if (path === "/api/v1/session") {
      const isRight = request.headers.authorization === `Bearer ${token}` && request.headers["x-troupe-request"] === "1";
      response.writeHead(isRight ? 204 : 401, isRight ? { "Set-Cookie": `${cookie}; Path=/; HttpOnly; SameSite=Strict` } : {});
      return void response.end(isRight ? "" : "the token is not this job's");
    }
    if (request.headers.cookie !== cookie) {
      response.writeHead(401);
      return void response.end("a token is needed");
    }
    if (path === "/api/v1/events") {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      for (const one of past) response.write(one);
      streams.add(response);
      return void request.on("close", () => streams.delete(response));
    }
    if (path.startsWith("/api/v1/control/") && request.method === "POST" && request.headers["x-troupe-request"] === "1") {
      let body = "";
      request.on("data", (piece) => (body += piece));
      return void request.on("end", () => {
        const action = path.slice("/api/v1/control/".length);
        served.commands.push({ action, body: JSON.parse(body || "{}") });
        response.writeHead(served.refuseCommands ? 409 : 202);
        response.end(JSON.stringify(served.refuseCommands ? { error: served.refuseCommands } : { id: `0-${served.commands.length - 1}`, action, target: "the job" }));
      });
    }
    if (path === "/api/v1/findings" && served.findings) return json(response, { findings: served.findings });
    const answer = answers[path.slice("/api/v1/".length)];
    if (answer) return json(response, answer());
    response.writeHead(404);
    response.end("there is nothing here");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  served.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/#token=${token}`;
  return served;
}
