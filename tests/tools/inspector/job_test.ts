// The page over a real job: four processes that train a GPT, opened from the link that the launcher prints.
// Arguments by environment: TROUPE_PROGRAM, GPT_PROGRAM.

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { startBrowser, type TestBrowser } from "./browser.js";

let browser: TestBrowser;
let job: ChildProcess;
let link: string;
let said = "";

/// The link in the launcher's line {"event":"inspector","url":..}.
function linkOf(started: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    started.stdout!.on("data", (piece) => {
      text += String(piece);
      const found = /"event":"inspector".*?"url":"([^"]+)"/.exec(text);
      if (found) resolve(found[1]!);
    });
    started.stderr!.on("data", (piece) => (said += String(piece)));
    started.on("exit", (code) => reject(new Error(`the job ended with ${code} before it printed a link: ${said}`)));
  });
}

before(async () => {
  browser = (await startBrowser()) as TestBrowser;
  job = spawn(process.env.TROUPE_PROGRAM!, [
    "launch", "--nproc-per-node", "4", "--", process.env.GPT_PROGRAM!, "--size", "tiny", "--stages", "4", "--microbatches", "8",
    "--epochs", "10000", "--json", "--inspect",
  ], { stdio: ["ignore", "pipe", "pipe"] });
  link = await linkOf(job);
});
after(async () => {
  await browser?.close();
  if (!job || job.exitCode !== null) return;
  const ended = new Promise((resolve) => job.once("exit", resolve));
  job.kill("SIGTERM");
  await ended;
});

const stepOf = (page: Page) => page.evaluate(() => Number(/step ([\d,]+)/.exec(document.getElementById("where")?.textContent ?? "")?.[1]?.replaceAll(",", "") ?? -1));

test("the launcher's link shows the tree and the timeline of a running job, and they move", async () => {
  const context = await browser.open();
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !message.text().includes("404")) problems.push(message.text());
  });
  await page.goto(link);
  await page.getByRole("heading", { name: "Processes: 4 of 4 active" }).waitFor();
  await page.waitForFunction(() => /step [1-9]/.test(document.getElementById("where")?.textContent ?? ""));
  const first = await stepOf(page);
  await page.keyboard.press("2");
  for (const rank of [0, 1, 2, 3]) await page.getByRole("treeitem", { name: `rank ${rank}` }).first().waitFor();
  await page.getByRole("treeitem", { name: "device 3" }).waitFor();
  await page.keyboard.press("3");
  await page.getByText("device 3").first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll(".bar-forward").length >= 4 * 8);
  await page.waitForFunction((before) => Number(/step ([\d,]+)/.exec(document.getElementById("where")?.textContent ?? "")?.[1]?.replaceAll(",", "") ?? -1) > before, first);
  // Measured steps come while the call runs: it ends with the test only.
  await page.getByText(/Step [\d,]+ as measured took/).waitFor();
  const shown = await page.locator("#measured-step").innerText();
  await page.waitForFunction((before) => document.getElementById("measured-step")?.innerText !== before, shown);
  await page.getByRole("table", { name: "busy and idle time" }).waitFor();
  assert.ok(!page.url().includes("token"));
  assert.deepEqual(problems, []);
  await context.close();
});

/// A job that ends by itself, and what it says.
function shortJob(processes: number, more: string[]): { started: ChildProcess; weights: Promise<string> } {
  const started = spawn(process.env.TROUPE_PROGRAM!, [
    "launch", "--nproc-per-node", String(processes), "--", process.env.GPT_PROGRAM!, "--size", "tiny", "--stages", "4", "--microbatches", "8",
    "--steps", "600", "--epochs", "1000", "--json", ...more,
  ], { stdio: ["ignore", "pipe", "pipe"] });
  const weights = new Promise<string>((resolve, reject) => {
    let text = "";
    started.stdout!.on("data", (piece) => (text += String(piece)));
    started.on("exit", (code) => {
      const found = /"weights_sha256":"([0-9a-f]+)"/.exec(text);
      if (code === 0 && found) resolve(found[1]!);
      else reject(new Error(`the job ended with ${code}: ${text.slice(-500)}`));
    });
  });
  weights.catch(() => undefined);  // whoever waits for it is told
  return { started, weights };
}

test("a job that is paused, stepped, gone on with and hurt from the page ends with the same bits", async () => {
  const { started, weights } = shortJob(4, ["--inspect", "--inspect-control"]);
  const opened = linkOf(started);  // reads on from here: the line comes while the browser starts
  const context = await browser.open();
  try {
    const page = await context.newPage();
    await page.goto(await opened);
    const confirm = async () => {
      await page.locator("#confirm").focus();
      await page.keyboard.press("Enter");
    };
    await page.getByRole("button", { name: "Pause" }).focus();
    await page.keyboard.press("Enter");
    await confirm();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    const step = page.getByRole("button", { name: "Step step" });
    await step.and(page.locator(":enabled")).waitFor();
    await step.focus();
    await page.keyboard.press("Enter");
    await confirm();
    await page.getByText("step: done").waitFor();
    await page.getByRole("button", { name: "Resume" }).focus();
    await page.keyboard.press("Enter");
    await confirm();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.evaluate(() => { location.hash = "#/actor/2%230%2Fstage%2F2"; });
    await page.getByRole("button", { name: "Kill actor" }).click();
    await page.getByRole("dialog").getByText("Kill stage 2 of rank 2?").waitFor();
    await page.locator("#confirm").click();
    await page.getByText("kill: done").waitFor();
    await page.getByText("started again").waitFor();
    await page.getByText("1×").first().waitFor();
    const ended = await weights;
    assert.equal(ended, await shortJob(1, []).weights);
  } finally {
    await context.close();
    started.kill("SIGTERM");
  }
});

test("a wrong token sees nothing of a running job", async () => {
  const context = await browser.open();
  const page = await context.newPage();
  await page.goto(link.replace(/token=.*/, "token=not-the-token-of-this-job"));
  await page.getByText("only to those who have its token").waitFor();
  assert.ok(!(await page.locator("body").innerText()).includes("generation"));
  await context.close();
});
