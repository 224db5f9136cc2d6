// The playground of the documentation site in a real browser, opened as a file: the searches run, one can watch,
// stop, step and change them, and every algorithm works on every function.
//
// usage: node playground.mjs SITE [SCREENSHOTS]

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const site = resolve(process.argv[2]);
const screenshots = process.argv[3];
if (readFileSync(join(site, "javascripts/playground-module.js"), "utf8").includes('""')) {
  console.log("skipped: the site was built without the playground's module");
  process.exit();
}
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
});
try {
  const page = await browser.newPage({ reducedMotion: "reduce", viewport: { width: 1200, height: 1100 } });
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  const picture = async (name) => screenshots && (await page.screenshot({ path: join(screenshots, `${name}.png`) }));
  const is = (state) => page.waitForSelector(`#searches[data-state=${state}]`, { timeout: 60000 });
  const statuses = () => page.locator(".playground-status").allTextContents();
  const evaluations = async () => (await statuses()).map((text) => Number.parseInt(text, 10));
  const best = async () => (await statuses()).map((text) => Number(/best ([^,]*)/.exec(text)?.[1]));
  const message = () => page.locator(".playground-message").textContent();

  await page.goto(pathToFileURL(join(site, "playground.html")).href);
  // Who asks for less motion presses a button first.
  await is("ready");
  assert.deepEqual(await evaluations(), [0, 0, 0, 0]);
  await page.getByRole("button", { name: "One step" }).click();
  assert.deepEqual(await evaluations(), [1, 1, 1, 1]);

  await page.getByRole("button", { name: "Play" }).click();
  await is("playing");
  await page.getByRole("button", { name: "Pause" }).click();
  await is("ready");
  const paused = await evaluations();
  await page.waitForTimeout(200);
  assert.deepEqual(await evaluations(), paused);
  await page.getByLabel("speed").fill("7");
  await page.getByRole("button", { name: "Play" }).click();
  await is("done");
  assert.deepEqual(await evaluations(), [150, 150, 150, 150]);
  const [auto, raceCars, , random] = await best();
  assert.ok(auto < random && raceCars < random, `${await statuses()}`);
  assert.match((await statuses())[1], /region \S+ %/);
  assert.match(await page.locator(".playground-panels details").first().textContent(), /\d+: \w+/);
  await picture("playground-done");
  const drawn = await page.locator(".playground-panels canvas").first().evaluate((canvas) => {
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return new Set(Array.from({ length: pixels.length / 4 }, (_, i) => pixels.slice(4 * i, 4 * i + 3).join())).size;
  });
  assert.ok(drawn > 100, `a landscape of ${drawn} colours`);

  // The same seed, the same searches; another seed, others.
  const once = await statuses();
  const through = async () => {
    await page.getByRole("button", { name: "Play" }).click();
    await is("done");
    return statuses();
  };
  assert.deepEqual(await through(), once);
  await page.getByLabel("seed", { exact: true }).fill("2");
  await page.getByLabel("seed", { exact: true }).blur();
  assert.deepEqual(await evaluations(), [0, 0, 0, 0]);
  assert.notDeepEqual(await through(), once);

  // What cannot be is refused, and the searches stay.
  await page.getByLabel("evaluations", { exact: true }).fill("5");
  await page.getByLabel("evaluations", { exact: true }).blur();
  assert.deepEqual(await evaluations(), [150, 150, 150, 150]);
  await page.getByLabel("evaluations", { exact: true }).fill("12");
  await page.getByLabel("evaluations", { exact: true }).blur();

  const options = (label) => page.getByLabel(label, { exact: true }).locator("option").allTextContents();
  const [functions, algorithms] = [await options("function"), await options("algorithm 1")];
  assert.ok(functions.length >= 8 && algorithms.length >= 10, `${functions}; ${algorithms}`);
  await page.getByLabel("jumps").check();
  await page.getByLabel("rotated").check();
  for (const [i, name] of functions.entries()) {
    await page.getByLabel("function", { exact: true }).selectOption(name);
    for (let panel = 0; panel < 4; panel++) {
      const algorithm = algorithms[(4 * i + panel) % algorithms.length];
      await page.getByLabel(`algorithm ${panel + 1}`).selectOption(algorithm);
    }
    await through();
    assert.deepEqual([await evaluations(), await message()], [[12, 12, 12, 12], ""], name);
  }

  await page.setViewportSize({ width: 400, height: 1200 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${wide} pixels wider than a phone`);
  await picture("playground-phone");

  // Without the wish for less motion it begins by itself.
  const lively = await browser.newPage();
  lively.on("pageerror", (error) => wrong.push(String(error)));
  await lively.goto(pathToFileURL(join(site, "playground.html")).href);
  await lively.waitForSelector("#searches[data-state=playing]");
  assert.deepEqual(wrong, []);
  console.log(`the playground: ${functions.length} functions and ${algorithms.length} algorithms, as they should be`);
} finally {
  await browser.close();
}
