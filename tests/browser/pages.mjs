// The report and the live page in a real browser: they open without errors and without the network,
// can be used with the keyboard, and the live one follows a study through its whole life.
//
// usage: node pages.mjs RACECARS SYNTHETIC (the two programs)

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const [racecars, synthetic] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "racecars-pages-"));
const started = [];

/** Runs a program to its end. */
function run(program, ...words) {
  const { status, stderr } = spawnSync(program, words, { encoding: "utf8" });
  assert.equal(status, 0, `${program} ${words.join(" ")}: ${stderr}`);
}

/** Starts a program; resolves with its first line. */
function start(program, ...words) {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] });
  started.push(child);
  return new Promise((resolve, reject) => {
    let text = "";
    child.on("exit", (code) => reject(new Error(`${program} ended with ${code}`)));
    child.stdout.on("data", (part) => {
      text += part;
      if (text.includes("\n")) resolve({ child, line: text.split("\n")[0] });
    });
  });
}

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** A page that fails the test when anything goes wrong in it. */
async function open(address, { scheme = "light", width = 1200 } = {}) {
  const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
  const page = await context.newPage();
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(error.message));
  page.on("console", (message) => message.type() === "error" && page.problems.push(message.text()));
  page.on("request", (request) => {
    const isOurs = /^(file:|data:|http:\/\/127\.0\.0\.1)/.test(request.url());
    if (!isOurs) page.problems.push(`a request to ${request.url()}`);
  });
  await page.goto(address);
  return page;
}

const tests = {
  async "reports of all kinds open without errors, light and dark, wide and narrow"() {
    for (const kind of ["small", "failing", "maximize", "halfway", "begun", "wide"]) {
      const [study, file] = [join(folder, kind), join(folder, `${kind}.html`)];
      run(synthetic, kind, study);
      run(racecars, "report", study, "--out", file);
      assert.ok(statSync(file).size < 5e6, `${kind} is ${statSync(file).size} bytes`);
      for (const options of [{}, { scheme: "dark", width: 380 }]) {
        const page = await open(`file://${file}`, options);
        assert.equal(await page.locator("h1").textContent(), kind);
        const sections = await page.locator("section h2").allTextContents();
        if (kind === "begun") assert.deepEqual(sections, ["Reproduce"]);
        else {
          assert.deepEqual(sections, ["Convergence", "Best point", "Importance", "Slices", "The best tenth", "Region", "Failures", "Workers", "Reproduce"]);
          // Something is drawn on every canvas.
          const blank = await page.$$eval("canvas", (all) => all.filter((canvas) => {
            const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            return !data.some((byte) => byte);
          }).length);
          assert.equal(blank, 0, `${blank} charts of ${kind} are blank`);
        }
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(overflow <= 0, `${kind} is ${overflow} pixels too wide at ${options.width}`);
        assert.deepEqual(page.problems, []);
        await page.context().close();
      }
    }
  },

  async "a report of 500 parameters shows 20 and finds the others"() {
    const page = await open(`file://${join(folder, "wide.html")}`);
    assert.equal(await page.locator("#slices figure").count(), 20);
    await page.locator("#more").click();
    assert.equal(await page.locator("#slices figure").count(), 40);
    await page.locator("#search").fill("x[417]");
    await page.waitForFunction(() => document.querySelectorAll("#slices figure").length === 1);
    assert.equal(await page.locator("#slices h3").textContent(), "x[417]");
    assert.equal(await page.evaluate(() => document.activeElement.id), "search");
    assert.deepEqual(page.problems, []);
    await page.context().close();
  },

  async "a report is used with the keyboard, and nothing in a journal is taken for markup"() {
    const page = await open(`file://${join(folder, "failing.html")}`);
    await page.locator("#convergence .chart").focus();
    await page.keyboard.press("End");
    assert.match(await page.locator("#tip").textContent(), /trial \d+|best after/);
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#tip").isHidden());
    await page.locator("#convergence input[value=time]").focus();
    await page.keyboard.press("Space");
    assert.match(await page.locator("#convergence .chart").getAttribute("aria-label"), /running time/);
    assert.match(await page.locator("#failures pre").first().textContent(), /x <out> of range & broken/);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  },

  async "the live page waits, follows a study, survives its end, and finds a server that was gone"() {
    const study = join(folder, "live");
    const { child, line } = await start(racecars, "watch", study, "--addr", "127.0.0.1:0");
    const [address] = line.match(/http:\/\/127\.0\.0\.1:\d+/);
    const page = await open(address);
    const badge = (text) => page.waitForFunction((text) => document.getElementById("badge").textContent.includes(text), text);
    await badge("waiting");
    const told = () => page.locator(".tile .figure").nth(1).textContent().then((text) => Number(text.replace(/\D/g, "")));
    const program = 'sleep 0.05; echo "$1" | awk "{print (\\$1 - 3) ^ 2}"';
    const running = spawn(racecars, ["run", "-p", "x=0:10", "--budget", "120", "--jobs", "2", "--study", study, "--", "sh", "-c", program, "sh", "{x}"], { stdio: "ignore" });
    started.push(running);
    const over = new Promise((resolve) => running.on("exit", resolve));
    await badge("running");
    await page.waitForFunction(() => document.querySelectorAll("section").length === 10);
    const early = await told();
    assert.ok(early < 120, "the page was there before the end");
    await page.waitForFunction((early) => Number(document.querySelectorAll(".tile .figure")[1].textContent.replace(/\D/g, "")) > early, early);
    assert.equal(await over, 0);
    await badge("stopped");
    assert.equal(await told(), 120);
    await page.reload();
    await badge("stopped");
    assert.deepEqual(page.problems, []);
    const gone = new Promise((resolve) => child.on("exit", resolve));
    child.removeAllListeners("exit");
    child.kill();
    await Promise.race([gone, new Promise((resolve) => setTimeout(resolve, 500))]);
    await badge("connection lost");
    assert.equal(await told(), 120, "what was shown stays");
    await start(racecars, "watch", study, "--addr", new URL(address).host);
    await badge("stopped");
    await page.context().close();
  },
};

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  const start = Date.now();
  try {
    await test();
    console.log(`ok    ${name} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n${error.stack}`);
  }
}
await browser.close();
for (const child of started) {
  child.removeAllListeners("exit");
  if (child.exitCode === null) child.kill();
}
rmSync(folder, { recursive: true, force: true });
process.exit(failed ? 1 : 0);
