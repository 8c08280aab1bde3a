// A headless chromium for tests, or why there is none.

import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { BrowserContext, BrowserContextOptions } from "playwright-core";

export interface TestBrowser {
  /// A context of its own: no cookies of others.
  open(options?: BrowserContextOptions): Promise<BrowserContext>;
  close(): Promise<void>;
}

function chromiumPath(): string | null {
  for (const folder of (process.env.PATH ?? "").split(delimiter))
    for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
      const path = join(folder, name);
      if (existsSync(path)) return path;
    }
  return null;
}

/// A text: why there is no browser.
export async function startBrowser(): Promise<TestBrowser | string> {
  const executablePath = chromiumPath();
  if (executablePath === null) return "there is no chromium (tools/setup browser installs it)";
  let playwright: typeof import("playwright-core");
  try {
    playwright = await import("playwright-core");
  } catch {
    return "playwright-core is not installed in the build folder (npm ci)";
  }
  const profile = await mkdtemp(join(tmpdir(), "troupe-browser-"));
  const browser = await playwright.chromium.launch({
    executablePath, headless: true,
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
    env: { ...(process.env as Record<string, string>), HOME: profile, XDG_CONFIG_HOME: profile, XDG_CACHE_HOME: profile },
  });
  return {
    async open(options) {
      const context = await browser.newContext(options);
      context.setDefaultTimeout(120_000);  // of a busy machine; a test of what never comes has a limit of its own
      return context;
    },
    async close() {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}
