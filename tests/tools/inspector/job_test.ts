// The page over a real job: four processes that train a GPT, opened from the link that the launcher prints.
// Arguments by environment: TROUPE_PROGRAM, GPT_PROGRAM, JOB_STEPS (of the job that is paused and hurt).

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { startBrowser, type TestBrowser } from "./browser.js";
import { launchJob, type LaunchedJob } from "./launched_job.js";

let browser: TestBrowser;
let job: LaunchedJob;
let link: string;

before(async () => {
  browser = (await startBrowser()) as TestBrowser;
  job = launchJob(4, ["--size", "tiny", "--epochs", "10000", "--inspect"]);
  link = await job.link;
});
after(async () => {
  await browser?.close();
  await job?.end();
});

const stepOf = (page: Page) => page.evaluate(() => Number(/step ([\d,]+)/.exec(document.getElementById("where")?.textContent ?? "")?.[1]?.replaceAll(",", "") ?? -1));
const generationOf = (page: Page) => page.evaluate(() => Number(/generation (\d+)/.exec(document.getElementById("where")?.textContent ?? "")?.[1] ?? -1));

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

test("a wrong token sees nothing of a running job", async () => {
  const context = await browser.open();
  const page = await context.newPage();
  await page.goto(link.replace(/token=.*/, "token=not-the-token-of-this-job"));
  await page.getByText("only to those who have its token").waitFor();
  assert.ok(!(await page.locator("body").innerText()).includes("generation"));
  await context.close();
});

const shortJob = (processes: number, more: string[]) => launchJob(processes, ["--size", "tiny", "--steps", process.env.JOB_STEPS!, "--epochs", "1000", ...more]);

test("a job that is paused, stepped, hurt and resumed from the page ends with the same bits", async () => {
  await job.end();  // the machine is for one job
  const hurt = shortJob(4, ["--inspect", "--inspect-control"]);
  const context = await browser.open();
  try {
    const page = await context.newPage();
    await page.goto(await hurt.link);
    /// Gives a command by keyboard, confirms it by its name, and waits for its outcome.
    const command = async (button: string, deed: string) => {
      const given = page.getByRole("button", { name: button, exact: true }).and(page.locator(":enabled"));
      await given.focus();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByRole("button", { name: deed }).focus();
      await page.keyboard.press("Enter");
      await page.getByText(`${deed}: done`).waitFor();
    };
    /// The step of a job whose devices have come to where they stop.
    const pausedStep = async (isOther: number) => {
      await page.waitForFunction((before) => {
        const step = Number(/step ([\d,]+)/.exec(document.getElementById("where")?.textContent ?? "")?.[1]?.replaceAll(",", "") ?? before);
        return document.querySelector("header .pill")?.textContent === "paused" && step !== before;
      }, isOther);
      return stepOf(page);
    };
    /// Waits until the page shows a later generation than `before`.
    const nextGeneration = async (before: number) => {
      await page.waitForFunction((old) => Number(/generation (\d+)/.exec(document.getElementById("where")?.textContent ?? "")?.[1] ?? 0) > old, before);
      return generationOf(page);
    };
    await command("Pause", "Pause the job");
    const step = await pausedStep(-1);
    await command("Run one step", "Run one step");
    assert.equal(await pausedStep(step), step + 1);
    const first = await generationOf(page);
    await page.evaluate(() => { location.hash = "#/actor/2%230%2Fstage%2F2"; });
    await command("Kill actor", "Kill stage 2 of rank 2");
    const second = await nextGeneration(first);
    await page.getByText("1×").first().waitFor();
    await page.evaluate(() => { location.hash = "#/actor/3%230%2Fstage%2F3"; });
    await command("Kill process", "Kill the process of rank 3");
    await nextGeneration(second);
    await page.keyboard.press("2");
    await page.getByRole("treeitem", { name: "rank 3, incarnation 1" }).waitFor();
    await page.getByRole("treeitem", { name: "rank 3 (lost)" }).waitFor();
    await command("Resume", "Resume the job");
    assert.equal(await hurt.weights, await shortJob(1, []).weights);
  } finally {
    await context.close();
    await hurt.end();
  }
});
