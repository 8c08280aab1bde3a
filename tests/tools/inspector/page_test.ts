// The page in a browser, over a made-up job: keys, size, darkness, hostile names, commands and their confirmation.
// Arguments by environment: PAGE_DIR, SOURCE_DIR.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { startBrowser, type TestBrowser } from "./browser.js";
import { device, link, shownFrame } from "./shown_frame.js";
import { servePage, type ServedPage } from "./served_page.js";

let browser: TestBrowser;
let served: ServedPage;

before(async () => {
  browser = (await startBrowser()) as TestBrowser;
  served = await servePage(process.env.PAGE_DIR!, process.env.SOURCE_DIR!, shownFrame());
});
after(async () => {
  await browser?.close();
  await served?.close();
});

/// Opens the page. Anything that the browser complains about, and any request to elsewhere, fails the test.
async function withPage(body: (page: Page) => Promise<void>, options: BrowserContextOptions = {}, url = served.url): Promise<void> {
  const context = await browser.open(options);
  try {
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !/status of (401|404|409)/.test(message.text())) problems.push(message.text());
    });
    page.on("request", (request) => {
      const { protocol, host } = new URL(request.url());
      if (protocol !== "data:" && host !== new URL(served.url).host) problems.push(`a request to ${request.url()}`);
    });
    await page.goto(url);
    await body(page);
    assert.deepEqual(problems, []);
  } finally {
    await context.close();
  }
}

async function hasNoSidewaysScroll(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
}

test("the link opens the page, the token leaves the address, and a later visit needs none", async () => {
  await withPage(async (page) => {
    await page.getByRole("heading", { name: "Loss" }).waitFor();
    assert.ok(!page.url().includes("token"));
    await page.goto(new URL("/", served.url).href);
    await page.getByRole("heading", { name: "Loss" }).waitFor();
  });
});

test("a job with a finding is amber, one without says that nothing is wrong, and one that stands says for how long", async () => {
  try {
    await withPage(async (page) => {
      served.findings = [];
      await page.getByText("Nothing is wrong, as far as can be seen.").waitFor();
      await page.locator("#health-word .pill.good").waitFor();
      served.frame.job = { ...served.frame.job, steps_per_s: 0, newest_step_ms: served.frame.job.updated_ms - 20_000 };
      await page.locator("#health-word .pill.between", { hasText: "no step for 20 s" }).waitFor();
      await page.locator("#steps-per-second", { hasText: "0 steps/s" }).waitFor();
      served.findings = [{ kind: "stuck_rank", actor: null, rank: 1, device: 1, text: "device 1 does not return", since_ms: 1, seen_ms: 2 }];
      await page.locator("#health-word .pill.between", { hasText: "1 finding" }).waitFor();
      assert.equal(await page.locator(".pill.good", { hasText: "running" }).count(), 0);
    });
  } finally {
    served.findings = null;
    served.frame = shownFrame();
  }
});

test("a wrong token, or none, sees nothing of the job", async () => {
  for (const hash of ["#token=wrong-wrong-wrong", ""])
    await withPage(async (page) => {
      await page.getByText("only to those who have its token").waitFor();
      const text = await page.locator("body").innerText();
      for (const word of ["job-7", "alpha", "rank", "2.5"]) assert.ok(!text.includes(word), `${word} in: ${text}`);
    }, {}, new URL(`/${hash}`, served.url).href);
});

test("all views by keyboard alone, and the tree too", async () => {
  await withPage(async (page) => {
    await page.getByRole("heading", { name: "Loss" }).waitFor();
    for (const [key, text] of [["7", "In memory"], ["6", "No event is shown"], ["5", "Links"], ["4", "Why is device"], ["3", "straggler"], ["1", "Throughput"]] as const) {
      await page.keyboard.press(key);
      await page.getByText(text).first().waitFor();
    }
    await page.keyboard.press("2");
    await page.getByRole("treeitem").first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("rank 2");
    await page.waitForFunction(() => document.querySelectorAll("[role=treeitem]").length === 6);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("role")), "tree");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    await page.getByRole("treeitem", { selected: true, name: "stage 2" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "stage 2" }).waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });
});

test("a process of the tree is closed and opened by its mark, and by a double click", async () => {
  await withPage(async (page) => {
    await page.getByRole("heading", { name: "Loss" }).waitFor();
    await page.keyboard.press("2");
    const process = page.getByRole("treeitem", { name: "rank 1" }).first();
    const isOpen = (wanted: boolean) => process.and(page.locator(`[aria-expanded=${wanted}]`)).waitFor();
    await isOpen(true);
    for (const wanted of [false, true]) {
      await process.locator(".twist").click();
      await isOpen(wanted);
    }
    for (const wanted of [false, true]) {
      await process.dblclick();
      await isOpen(wanted);
    }
    assert.equal(await process.getAttribute("aria-selected"), "true");
  });
});

test("every view fits a phone, and is dark where the reader wants that", async () => {
  await withPage(async (page) => {
    await page.getByRole("heading", { name: "Loss" }).waitFor();
    for (const view of ["overview", "tree", "timeline", "waits", "flow", "events", "snapshots"]) {
      await page.goto(new URL(`/#/${view}`, served.url).href);
      await page.locator(`main.view-${view}`).waitFor();
      assert.ok(await hasNoSidewaysScroll(page), `${view} is wider than the phone`);
    }
    const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const parts = ground.match(/\d+/g)!.map(Number);
    assert.ok(Math.max(...parts.slice(0, 3)) < 64, ground);
  }, { viewport: { width: 375, height: 700 }, colorScheme: "dark", hasTouch: true, isMobile: true });
});

test("one row holds the job's state and the help, at every width", async () => {
  served.frame.job = { ...served.frame.job, control: true };
  try {
    await withPage(async (page) => {
      await page.getByRole("button", { name: "Run one step" }).waitFor();
      for (const width of [1600, 1280, 1100, 900, 390]) {
        await page.setViewportSize({ width, height: 800 });
        const [title, help] = [await page.locator("h1").boundingBox(), await page.getByRole("button", { name: "keys" }).boundingBox()];
        assert.ok(help!.y < title!.y + title!.height && help!.x + help!.width <= width, `the help is at ${JSON.stringify(help)} of ${width} px`);
        assert.ok(await hasNoSidewaysScroll(page));
      }
    });
  } finally {
    served.frame = shownFrame();
  }
});

test("labels of the message flow cover neither each other nor a process, also on a phone", async () => {
  served.frame.links = [0, 1, 2, 3].flatMap((from) => [0, 1, 2, 3].filter((to) => to !== from).map((to) => link(from, to)));
  try {
    await withPage(async (page) => {
      await page.getByRole("heading", { name: "Loss" }).waitFor();
      await page.keyboard.press("5");
      await page.locator(".edge-label").first().waitFor();
      for (const width of [1280, 390]) {
        await page.setViewportSize({ width, height: 800 });
        await page.waitForFunction((most) => document.querySelector(".flow")!.getBoundingClientRect().width <= most, Math.max(width, 4 * 96));
        const covered = await page.evaluate(() => {
          const all = [...document.querySelectorAll(".edge-label, .flow-node rect")].map((one) => one.getBoundingClientRect());
          return all.flatMap((one, index) => all.slice(0, index).filter((other) => one.left < other.right && other.left < one.right && one.top < other.bottom - 1 && other.top < one.bottom - 1)).length;
        });
        assert.equal(await page.locator(".edge-label").count(), 12);
        assert.equal(covered, 0, `at ${width} px`);
      }
    });
  } finally {
    served.frame = shownFrame();
  }
});

test("a phone shows how many messages wait in a mailbox, whatever else is in the row", async () => {
  served.frame = shownFrame();
  for (const one of served.frame.actors) Object.assign(one, { mailbox_depth: 12345, reason: "a reason that is longer than a phone is wide", restarts: 3 });
  try {
    await withPage(async (page) => {
      await page.getByRole("heading", { name: "Loss" }).waitFor();
      await page.keyboard.press("2");
      await page.getByText("✉ 12,345").first().waitFor();
      const cut = await page.evaluate(() => [...document.querySelectorAll(".mailbox")].filter((one) => one.getBoundingClientRect().right > one.closest(".row")!.getBoundingClientRect().right).length);
      assert.equal(cut, 0);
    }, { viewport: { width: 390, height: 844 } });
  } finally {
    served.frame = shownFrame();
  }
});

test("a timeline names the bars of its plan and those that were measured", async () => {
  await withPage(async (page) => {
    await page.getByRole("heading", { name: "Loss" }).waitFor();
    await page.keyboard.press("3");
    await page.locator(".timeline-row").first().waitFor();
    const tops = await page.evaluate(() => ["plan", "measured", "idle"].map((text) => [...document.querySelectorAll(".timeline-row:nth-of-type(2) .timeline-tags span")].find((one) => one.textContent === text)!.getBoundingClientRect().top));
    assert.ok(tops[0]! < tops[1]! && tops[1]! < tops[2]!, String(tops));
    assert.equal(await page.locator(".legend").getByText("plan").count(), 1);
  });
});

test("1,000 actors are all there, few of them in the document", async () => {
  served.frame = shownFrame(100, 9);
  try {
    await withPage(async (page) => {
      await page.getByRole("heading", { name: "Loss" }).waitFor();
      await page.keyboard.press("2");
      await page.getByText("1,000 actors run").or(page.getByText("1000 actors run")).waitFor();
      assert.ok((await page.getByRole("treeitem").count()) < 80);
      await page.getByRole("tree").focus();
      await page.keyboard.press("End");
      await page.getByRole("treeitem", { selected: true }).waitFor();
      const selected = page.getByRole("treeitem", { selected: true });
      assert.match((await selected.getAttribute("id"))!, /^row_99_0_/);
      assert.ok(await selected.isVisible());
    });
  } finally {
    served.frame = shownFrame();
  }
});

test("names and reasons are text, whatever is in them", async () => {
  const hostile = `<img src="/x" onerror="document.title='taken'"><script>document.title='taken'</script>`;
  served.frame = shownFrame();
  served.frame.processes[0]!.host = hostile;
  served.frame.actors[1]!.reason = hostile;
  served.findings = [{ kind: "stuck_rank", actor: null, rank: 0, device: 0, text: hostile, since_ms: served.frame.at_ms, seen_ms: served.frame.at_ms }];
  served.emit("actor", { rank: 0, role: "stage", number: 0, state: "running", starts: 2, reason: hostile });
  try {
    await withPage(async (page) => {
      await page.getByText(hostile).first().waitFor();
      for (const view of ["2", "6"]) {
        await page.keyboard.press(view);
        await page.getByText(hostile).first().waitFor();
      }
      assert.equal(await page.locator("main img, main script").count(), 0);
      assert.ok(!(await page.title()).includes("taken"));
    });
  } finally {
    served.frame = shownFrame();
    served.findings = null;
  }
});

test("the chain of waits leads from any device to the culprit", async () => {
  await withPage(async (page) => {
    await page.getByRole("heading", { name: "Loss" }).waitFor();
    await page.goto(new URL("/#/waits/0", served.url).href);
    const links = page.locator("#chain li");
    await links.nth(3).waitFor();
    assert.equal(await links.count(), 4);
    assert.match(await page.locator("#chain li.culprit").innerText(), /Device 3 computes 3B0/);
  });
});

test("the last minutes can be looked at again, and the present comes back", async () => {
  await withPage(async (page) => {
    await page.getByText("step 40, generation 1").waitFor();
    await page.waitForFunction(() => {
      const scrubber = document.getElementById("scrubber") as HTMLInputElement | null;
      return scrubber !== null && Number(scrubber.max) > Number(scrubber.min);
    });
    served.frame = { ...shownFrame(), job: { ...shownFrame().job, step: 77 } };
    await page.getByText("step 77, generation 1").waitFor();
    await page.locator("#scrubber").focus();
    await page.keyboard.press("Home");
    await page.getByText("step 40, generation 1").waitFor();
    await page.keyboard.press("l");
    await page.getByText("step 77, generation 1").waitFor();
  });
  served.frame = shownFrame();
});

test("commands are offered only where the job takes them, sent only once they are confirmed, and followed to their outcome", async () => {
  await withPage(async (page) => {
    await page.getByRole("heading", { name: "Loss" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Pause" }).count(), 0);
    served.frame.job = { ...served.frame.job, control: true };
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByText("Pause the job?").waitFor();
    await page.keyboard.press("Enter"); // Cancel has the focus
    await page.getByRole("dialog").waitFor({ state: "detached" });
    assert.deepEqual(served.commands, []);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Pause the job" }).click();
    await page.getByText("Pause the job: taken, not done yet").waitFor();
    assert.deepEqual(served.commands, [{ action: "pause", body: {} }]);
    served.emit("control", { id: "0-0", action: "pause", target: "the job", outcome: "done", text: null });
    await page.getByText("Pause the job: done").waitFor();
    served.frame.job = { ...served.frame.job, is_paused: true, log_level: "warn" };
    served.refuseCommands = "the job is stopping";
    await page.getByRole("button", { name: "Run one microbatch" }).and(page.locator(":enabled")).click();
    await page.locator("#confirm").click();
    await page.getByText("Run one microbatch: refused: the job is stopping").waitFor();
    assert.deepEqual(served.commands[1], { action: "step", body: { unit: "microbatch", count: 1 } });
    served.refuseCommands = null;
    await page.goto(new URL("/#/actor/2%230%2Fstage%2F2", served.url).href);
    await page.getByRole("button", { name: "Kill actor" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Kill stage 2 of rank 2" }).click();
    await page.getByText("Kill stage 2 of rank 2: taken").waitFor();
    assert.deepEqual(served.commands[2], { action: "kill", body: { actor: "2#0/stage/2" } });
    served.emit("control", { id: "0-2", action: "kill", target: "stage 2 of rank 2", outcome: "timed_out", text: "look at the job" });
    await page.getByText("Kill stage 2 of rank 2: timed out: look at the job").waitFor();
    const level = page.getByRole("combobox", { name: "log level" });
    assert.equal(await level.locator("option:checked").innerText(), "warn");
    await level.selectOption("debug");
    await page.getByRole("dialog").getByRole("button", { name: "Set the log level to debug" }).click();
    await page.getByText("Set the log level to debug: taken").waitFor();
    assert.equal(await level.inputValue(), "warn");
    served.emit("control", { id: "0-3", action: "log_level", target: "the job", outcome: "done", text: null });
    served.frame.job = { ...served.frame.job, log_level: "debug" };
    await page.waitForFunction(() => (document.querySelector("select") as HTMLSelectElement).value === "debug");
  });
  served.frame = shownFrame();
});

test("snapshots that are on disk now are listed, and no others", async () => {
  try {
    await withPage(async (page) => {
      served.frame.snapshots = { ...served.frame.snapshots, on_disk: [32, 24] };
      for (const step of [8, 16, 24, 32]) served.emit("snapshot", { step, at_ms: 1_700_000_000_000 + step });
      await page.keyboard.press("7");
      await page.locator("#on-disk li").first().waitFor();
      assert.deepEqual((await page.locator("#on-disk li").allInnerTexts()).map((one) => one.replace(/,.*/, "")), ["step 32", "step 24"]);
    });
  } finally {
    served.frame = shownFrame();
  }
});

test("a job that goes away leaves what was seen of it, and says so", async () => {
  const gone = await servePage(process.env.PAGE_DIR!, process.env.SOURCE_DIR!, { ...shownFrame(), devices: [device(0, "computing", 1)] });
  const context = await browser.open();
  try {
    const page = await context.newPage();
    await page.goto(gone.url);
    await page.getByText("step 40, generation 1").waitFor();
    await gone.close();
    await page.getByText("The job does not answer").waitFor();
    await page.getByText("step 40, generation 1").waitFor();
  } finally {
    await context.close();
  }
});
