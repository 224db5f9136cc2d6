// The documentation site in a real browser, opened as files: no page loads anything from another host, fails a
// script, or is wider than a phone; formulas are typeset; search finds pages.
//
// usage: node site.mjs SITE [SCREENSHOTS]

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const site = resolve(process.argv[2]);
const screenshots = process.argv[3];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
try {
  const page = await browser.newPage();
  const wrong = [];
  page.on("request", (request) => {
    if (!/^(file|data|blob|about):/.test(request.url())) wrong.push(`${page.url()} loads ${request.url()}`);
  });
  page.on("requestfailed", (request) => wrong.push(`${page.url()}: ${request.url()} failed`));
  page.on("pageerror", (error) => wrong.push(`${page.url()}: ${error}`));

  const names = readdirSync(site, { recursive: true }).filter((name) => name.endsWith(".html") && name !== "404.html");
  assert.ok(names.length > 20, `${site} has only ${names.length} pages`);
  for (const name of names) {
    for (const width of [1200, 400]) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto(pathToFileURL(join(site, name)).href);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) wrong.push(`${name} is ${wide} pixels wider than ${width}`);
      const broken = await page.evaluate(
        () => [...document.images].filter((image) => image.complete && !image.naturalWidth).map((image) => image.src),
      );
      wrong.push(...broken.map((image) => `${name}: ${image} is no picture`));
      const [formulas, typeset, errors] = await page.evaluate(() =>
        [".arithmatex", ".arithmatex .katex", ".katex-error"].map((what) => document.querySelectorAll(what).length),
      );
      if (typeset < formulas || errors) wrong.push(`${name}: ${formulas} formulas, ${typeset} typeset, ${errors} errors`);
      if (screenshots) {
        await page.screenshot({ path: join(screenshots, `${name.replaceAll("/", "-")}-${width}.png`) });
      }
    }
  }

  await page.setViewportSize({ width: 1200, height: 900 });
  await page.goto(pathToFileURL(join(site, "index.html")).href);
  await page.keyboard.press("Control+k");
  await page.keyboard.type("permutation");
  await page.getByRole("dialog").getByText("Orders, selections, shares").waitFor({ timeout: 60000 });
  if (screenshots) await page.screenshot({ path: join(screenshots, "search.png") });

  assert.deepEqual([...new Set(wrong)], []);
  console.log(`${names.length} pages in two widths, and the search: as they should be`);
} finally {
  await browser.close();
}
