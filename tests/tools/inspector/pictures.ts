// Takes the pictures of docs/ from a running job: four processes that train a GPT, of which an actor and a process are killed. The page
// comes from the build folder. Arguments by environment: PAGE_DIR, TROUPE_PROGRAM, GPT_PROGRAM, PICTURES (the folder that they are
// written to).

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Page } from "playwright-core";
import { startBrowser, type TestBrowser } from "./browser.js";
import { launchJob } from "./launched_job.js";

const folder = process.env.PICTURES!;

/// The window at this height in pixels, when the page shows it.
async function take(page: Page, name: string, height: number): Promise<void> {
  await page.setViewportSize({ width: 1200, height });
  await page.waitForTimeout(1500);
  await page.screenshot({ path: join(folder, `inspector_${name}.png`) });
}

test("pictures of a running job", async () => {
  const browser = (await startBrowser()) as TestBrowser;
  const job = launchJob(4, ["--size", "tiny", "--layers", "8", "--batch", "64", "--epochs", "100000", "--inspect", "--inspect-control"]);
  try {
    const page = await (await browser.open({ viewport: { width: 1200, height: 760 } })).newPage();
    for (const [file, type] of [["page.js", "text/javascript"], ["page.css", "text/css"]] as const)
      await page.route(`**/${file}`, (route) => route.fulfill({ contentType: type, body: readFileSync(join(process.env.PAGE_DIR!, file), "utf8") }));
    await page.goto(await job.link);
    await page.getByRole("heading", { name: "Processes: 4 of 4 active" }).waitFor();
    await page.waitForTimeout(60_000); // for curves
    await page.keyboard.press("3");
    await page.getByText(/Step [\d,]+ as measured took/).waitFor();
    await take(page, "timeline", 880);
    await page.keyboard.press("5");
    await page.locator(".edge-label").first().waitFor();
    await take(page, "flow", 620);
    for (const [actor, button, deed] of [["3#0/stage/3", "Kill actor", "Kill stage 3 of rank 3"], ["2#0/stage/2", "Kill process", "Kill the process of rank 2"]] as const) {
      await page.evaluate((id) => { location.hash = `#/actor/${encodeURIComponent(id)}`; }, actor);
      await page.getByRole("button", { name: button }).click();
      await page.getByRole("dialog").getByRole("button", { name: deed }).click();
      await page.getByText(`${deed}: done`).waitFor();
    }
    await page.keyboard.press("2");
    for (const rank of [0, 1]) await page.getByRole("treeitem", { name: `rank ${rank} ` }).locator(".twist").click();
    await page.waitForFunction(() => document.querySelector(".message")?.textContent === "");
    await page.setViewportSize({ width: 1200, height: 880 });
    await page.getByRole("treeitem", { name: "stage 3" }).first().click();
    await take(page, "tree", 880);
    await page.keyboard.press("1");
    await take(page, "overview", 790);
  } finally {
    await browser.close();
    await job.end();
  }
});
