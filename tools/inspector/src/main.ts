// The page of the inspector: state, routes and keys. What is shown is made from the state by the views.

import { tokenIn, type Frame, type Step } from "./api.js";
import { parseRoute, routeHash, viewNames, type AppActions, type AppState, type ViewName } from "./app_state.js";
import { controlBar } from "./control_bar.js";
import { showKeys } from "./dialogs.js";
import { h, patch, type Child } from "./dom.js";
import { Feed, openSession, type Connection, type FeedListener } from "./feed.js";
import { formatClock, formatNumber, formatSeconds } from "./format.js";
import { History } from "./history.js";
import { addEvents, type EventRow } from "./job_events.js";
import { healthOf, Staleness } from "./job_health.js";
import { Commands } from "./commands.js";
import { addSteps } from "./steps.js";
import { actorView } from "./views/actor_view.js";
import { eventsView } from "./views/events_view.js";
import { flowView } from "./views/flow_view.js";
import { overviewView } from "./views/overview_view.js";
import { button, nothingYet, pill } from "./views/pieces.js";
import { snapshotsView } from "./views/snapshots_view.js";
import { timelineView } from "./views/timeline_view.js";
import { treeView } from "./views/tree_view.js";
import { waitsView } from "./views/waits_view.js";

const keptMs = 5 * 60_000;
const keptRows = 150_000;
const mostSteps = 10_000;
const mostEvents = 5_000;
const resetMessageMs = 8000;

const views: Record<ViewName, (state: AppState, actions: AppActions) => Child> = {
  overview: overviewView,
  tree: treeView,
  actor: actorView,
  timeline: timelineView,
  waits: waitsView,
  flow: flowView,
  events: eventsView,
  snapshots: snapshotsView,
};

const titles: Record<ViewName, string> = {
  overview: "Overview",
  tree: "Supervision tree",
  actor: "Actor",
  timeline: "Timeline",
  waits: "Why waiting",
  flow: "Message flow",
  events: "Events",
  snapshots: "Snapshots",
};

const state: AppState = {
  frame: null,
  isLive: true,
  oldestMs: 0,
  newestMs: 0,
  steps: [],
  events: [],
  connection: "connecting",
  problem: "",
  route: parseRoute(location.hash),
  widthPx: 0,
  heightPx: 0,
  treeFilter: "",
  closedProcesses: new Set(),
  selectedRow: null,
  eventFilter: "",
  hiddenKinds: new Set(["step"]),
  zoom: 1,
  staleS: 0,
  isLogLoss: false,
  lossSmoothing: 0,
  scrollTops: new Map(),
  message: "",
};

const staleness = new Staleness();
const history = new History<Frame>(keptMs, keptRows);
const page = document.getElementById("page")!;
let isDrawing = false;

/// Draws once before the browser shows the next picture, however much has changed.
function drawSoon(): void {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    draw();
  });
}

const actions: AppActions = {
  change(how) {
    how(state);
    drawSoon();
  },
  go(view, of = "") {
    location.hash = routeHash(view, of);
  },
  control(command) {
    void commands.give(command).then(() => feed.pollSoon());
  },
};

let messageTimer: ReturnType<typeof setTimeout> | undefined;

function say(message: string, stays = false): void {
  actions.change((changed) => { changed.message = message; });
  clearTimeout(messageTimer);
  if (!stays) messageTimer = setTimeout(() => actions.change((changed) => { changed.message = ""; }), resetMessageMs);
}

const commands = new Commands(state, say);

const listener: FeedListener = {
  onFrame(frame: Frame, size: number) {
    history.add(frame.at_ms, frame, size);
    state.oldestMs = history.oldestMs ?? frame.at_ms;
    state.newestMs = frame.at_ms;
    state.staleS = staleness.seconds(frame.job.updated_ms, frame.at_ms);
    if (state.isLive) state.frame = frame;
    drawSoon();
  },
  onSteps(steps: Step[]) {
    state.steps = addSteps(state.steps, steps, mostSteps);
  },
  onEvents(rows: EventRow[]) {
    state.events = addEvents(state.events, rows, mostEvents);
    for (const row of rows) commands.onEvent(row);
    drawSoon();
  },
  onConnection(connection: Connection, problem: string) {
    state.connection = connection;
    state.problem = problem;
    drawSoon();
  },
};

const feed = new Feed(listener);

function showAt(at_ms: number): void {
  actions.change((changed) => {
    changed.isLive = at_ms >= changed.newestMs;
    changed.frame = changed.isLive ? history.newest : history.at(at_ms);
  });
}

// ---- the parts that all views have

function healthPill(frame: Frame): Child {
  const health = healthOf(frame, !state.isLive || state.connection === "open", state.isLive ? state.staleS : 0);
  return h("span", { id: "health-word", title: health.text }, pill(health.word, health.kind));
}

function header(): Child {
  const job = state.frame?.job;
  return h(
    "header", { key: "header" },
    h("h1", null, "Troupe"),
    job
      ? [
          healthPill(state.frame!),
          h("span", { class: "where", id: "where" }, `step ${formatNumber(job.step)}, generation ${job.generation}, ${job.world_size} process${job.world_size === 1 ? "" : "es"}`),
        ]
      : null,
    state.connection === "open" ? null : pill(state.connection),
    controlBar(state, actions),
    h("span", { class: "spread" }),
    button("?", () => void showKeys(), { "aria-label": "keys", title: "keys (?)" }),
  );
}

function navigation(): Child {
  return h(
    "nav", { key: "nav", "aria-label": "views" },
    viewNames.map((name, index) =>
      h("a", { key: name, href: routeHash(name), "aria-current": name === state.route.view || (name === "tree" && state.route.view === "actor") ? "page" : null, title: `${titles[name]} (${index + 1})` }, titles[name])),
  );
}

function scrubber(): Child {
  if (!state.frame || history.length < 2) return null;
  const at = state.frame.at_ms;
  return h(
    "footer", { key: "footer", class: state.isLive ? "" : "past" },
    h("label", { class: "unseen", for: "scrubber" }, "time that is shown"),
    h("input", {
      type: "range", id: "scrubber", min: String(state.oldestMs), max: String(state.newestMs), step: "any", value: String(state.isLive ? state.newestMs : at),
      "aria-valuetext": state.isLive ? "now" : `${formatSeconds((state.newestMs - at) / 1000)} ago`,
      oninput: (event: Event) => showAt(Number((event.currentTarget as HTMLInputElement).value)),
    }),
    h("span", { class: "shown-time", id: "shown-time" }, state.isLive ? `now, ${formatClock(at)}` : `${formatClock(at)}, ${formatSeconds(Math.round((state.newestMs - at) / 1000))} ago`),
    button("Now", () => showAt(Infinity), { disabled: state.isLive, title: "the present (l)" }),
  );
}

function refusedPart(): Child {
  const use = (event: Event) => {
    event.preventDefault();
    const text = (document.getElementById("token") as HTMLInputElement).value.trim();
    void begin(tokenIn(`#token=${text}`) ?? tokenIn(text.slice(text.indexOf("#"))));
  };
  return h(
    "main", { key: "refused", class: "refused" },
    h("h2", null, "This job shows itself only to those who have its token"),
    h("p", null, "Open the whole link that the job's start printed, with #token=… at its end, or enter the token:"),
    h("p", { class: "buttons" }, h("input", { id: "token", type: "password", autocomplete: "off", "aria-label": "token", onkeydown: (event: KeyboardEvent) => { if (event.key === "Enter") use(event); } }), h("button", { type: "button", onclick: use }, "Open")),
    h("p", { class: "note", role: "alert" }, state.problem),
  );
}

function notes(): Child {
  if (state.connection === "unreachable")
    return h("p", { class: "notice", role: "alert", key: "notice" }, `The job does not answer: it has ended, or rank 0 was replaced and serves elsewhere (its new address is in the job's output). What is shown was gathered before. ${state.problem}`);
  return null;
}

function draw(): void {
  if (state.connection === "refused") {
    patch(page, [header(), refusedPart()]);
    return;
  }
  state.widthPx = Math.min(page.clientWidth || innerWidth, 1600) - (innerWidth < 640 ? 20 : 40);
  state.heightPx = innerHeight;
  document.title = state.frame ? `${titles[state.route.view]} · Troupe` : "Troupe inspector";
  const shown = state.frame ? views[state.route.view](state, actions) : nothingYet("Waiting for the job …");
  patch(page, [
    header(),
    navigation(),
    h("main", { key: `view ${state.route.view}`, class: `view-${state.route.view}`, "aria-label": titles[state.route.view] }, notes(), shown),
    h("div", { key: "message", class: "message", role: "status" }, state.message),
    scrubber(),
  ]);
}

// ---- keys

function onKey(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target instanceof HTMLInputElement && target.type !== "checkbox" && target.type !== "range") {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (target instanceof HTMLSelectElement) return;
  const number = Number(event.key);
  const seconds = event.key === "[" ? -1 : event.key === "]" ? 1 : event.key === "{" ? -10 : event.key === "}" ? 10 : 0;
  if (number >= 1 && number <= viewNames.length) actions.go(viewNames[number - 1]!);
  else if (event.key === "/") document.getElementById("filter")?.focus();
  else if (event.key === "l") showAt(Infinity);
  else if (event.key === "?") void showKeys();
  else if (event.key === "+" || event.key === "-") actions.change((changed) => { changed.zoom = Math.min(64, Math.max(1, changed.zoom * (event.key === "+" ? 2 : 0.5))); });
  else if (seconds !== 0 && state.frame) showAt(Math.max(state.oldestMs, (state.isLive ? state.newestMs : state.frame.at_ms) + seconds * 1000 + (seconds > 0 ? 999 : 0)));
  else return;
  event.preventDefault();
}

async function begin(token: string | null): Promise<void> {
  if (token !== null) {
    window.history.replaceState(null, "", routeHash("overview"));
    state.route = parseRoute(location.hash);
    try {
      await openSession(token);
    } catch (problem) {
      listener.onConnection("refused", problem instanceof Error ? problem.message : String(problem));
      return;
    }
  }
  listener.onConnection("connecting", "");
  feed.start();
}

addEventListener("hashchange", () => {
  const token = tokenIn(location.hash);
  if (token !== null) return void begin(token);
  state.route = parseRoute(location.hash);
  draw();
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
});
addEventListener("resize", drawSoon);
addEventListener("keydown", onKey);
void begin(tokenIn(location.hash));
draw();
