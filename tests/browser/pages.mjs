// The report and the live page in a real browser: they open without errors and without the network,
// can be used with the keyboard, and the live one follows a study through its whole life.
//
// usage: node pages.mjs RACECARS SYNTHETIC (the two programs)

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
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
    for (const kind of ["small", "failing", "names", "maximize", "halfway", "begun", "wide", "long"]) {
      const [study, file] = [join(folder, kind), join(folder, `${kind}.html`)];
      run(synthetic, kind, study);
      run(racecars, "report", "--study", study, "--out", file);
      assert.ok(statSync(file).size < 2.5e6, `${kind} is ${statSync(file).size} bytes`);
      for (const options of [{}, { scheme: "dark", width: 380 }]) {
        const page = await open(`file://${file}`, options);
        assert.equal(await page.locator("h1").textContent(), kind);
        const sections = await page.locator("section h2").allTextContents();
        if (kind === "begun") assert.deepEqual(sections, ["Reproduce"]);
        else {
          assert.deepEqual(sections, ["Convergence", "Best point", "Importance", "Slices", ...(kind === "failing" ? ["Feasibility"] : []), "The best tenth", "Region", "Trials", "Failures", "Workers", "Reproduce"]);
          assert.match(await page.locator("#subline").textContent(), /^m\w+imize the last number printed · /);
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

  async "the table of trials is sorted, filtered and turned, also of 100,000"() {
    const page = await open(`file://${join(folder, "failing.html")}`);
    const column = (k) => page.$$eval(`#trials tbody td:nth-child(${k})`, (cells) => cells.map((cell) => cell.textContent.replace("\u2212", "-")));
    const status = () => page.locator("#trials [role=status]").textContent();
    assert.deepEqual((await column(1)).slice(0, 4), ["0", "1", "2", "3"]);
    assert.equal(await status(), "1 to 25 of 600");
    await page.locator("#later").click();
    assert.deepEqual([(await column(1))[0], await status()], ["25", "26 to 50 of 600"]);
    await page.locator("#sort-value").focus();
    await page.keyboard.press("Enter");
    const values = (await column(2)).map(Number);
    assert.ok(values.every((value, i) => i === 0 || values[i - 1] <= value), "values rise");
    const best = JSON.parse(await page.locator("#data").textContent()).best;
    assert.equal((await column(1))[0], `${best.trial}`, "the best comes first");
    assert.equal(await page.locator("#trials th[aria-sort=ascending]").textContent(), "Value \u25b4");
    assert.equal(await page.evaluate(() => document.activeElement.id), "sort-value");
    await page.locator("#filter").fill("mode = wild, failed");
    const outcomes = await column(3);
    assert.ok(outcomes.length > 3 && outcomes.every((outcome) => outcome === "failed"), `${outcomes}`);
    assert.ok((await column(7)).every((mode) => mode === "wild"));
    await page.locator("#filter").fill("layers >= 10, value < 1e9");
    assert.ok((await column(8)).every((layers) => Number(layers) >= 10) && (await column(8)).length > 0);
    await page.locator("#filter").fill("speed < 3");
    assert.equal(await status(), "There is no column speed.");
    await page.locator("#filter").fill("");
    assert.match(await status(), /of 600$/);
    assert.deepEqual(page.problems, []);
    await page.context().close();
    const long = await open(`file://${join(folder, "long.html")}`);
    const rows = Number((await long.locator("#trials [role=status]").textContent()).split("of ")[1].replace(/\D/g, ""));
    assert.ok(rows > 10_000 && rows < 100_000, `${rows} rows`);
    assert.match(await long.locator("#trials > p").textContent(), /of 100\u202f000 trials: the best, and an even choice of the others\. All are in racecars export/);
    await long.locator("#sort-value").click();
    const first = await long.locator("#trials tbody td").first().textContent();
    assert.equal(first, `${JSON.parse(await long.locator("#data").textContent()).best.trial}`);
    await long.locator("#filter").fill("mode = careful");
    assert.ok(Number((await long.locator("#trials [role=status]").textContent()).split("of ")[1].replace(/\D/g, "")) > rows / 10);
    assert.deepEqual(long.problems, []);
    await long.context().close();
  },

  async "every choice is named, points tell their parameters, and the scale shows what is near the best"() {
    const page = await open(`file://${join(folder, "names.html")}`);
    for (const width of [1200, 400]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForTimeout(400);
      const names = await page.locator("#slices figure", { hasText: "city" }).locator("svg text").allTextContents();
      const cities = names.filter((name) => /^(Ulm|Aachen|Wolfenbuettel|Kiel)-\d+$/.test(name));
      assert.equal(new Set(cities).size, 30, `${cities.length} cities at ${width}`);
      const solvers = await page.locator("#region figure", { hasText: "solver" }).locator("svg text").allTextContents();
      assert.ok(["lbfgs", "newton-cholesky", "saga", "liblinear", "sag"].every((name) => solvers.includes(name)), `${solvers}`);
    }
    for (const chart of ["#convergence .chart", "#slices .chart >> nth=1", "#region .chart >> nth=0", "#tenth .chart"]) {
      await page.locator(chart).focus();
      await page.keyboard.press("End");
      const tip = await page.locator("#tip").textContent();
      assert.ok(/trial \d+/.test(tip) && /city = \w+-\d+/.test(tip) && /solver = \w+/.test(tip), `${chart}: ${tip}`);
    }
    await page.locator("#convergence input[value=gap]").focus();
    await page.keyboard.press("Space");
    assert.match(await page.locator("#convergence > p").textContent(), /How far values are from the best one, 7/);
    const ticks = await page.locator("#convergence svg text").allTextContents();
    assert.ok(ticks.some((text) => /^1e\u2212\d+$/.test(text)), `${ticks}`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
    const failing = await open(`file://${join(folder, "failing.html")}`);
    const linked = await failing.locator("#linked tbody tr").allTextContents();
    assert.ok(linked.some((row) => row.startsWith("mode= wild")) && linked.some((row) => row.startsWith("xabove 2.")), `${linked}`);
    await failing.context().close();
  },

  async "a noisy study recommends a point and says how often it was evaluated, and fixed values and metrics are named"() {
    const study = join(folder, "noisy");
    const script = join(folder, "noisy.sh");
    writeFileSync(script, `echo "$2 $1" | awk '{print "{\\"score\\": " ($1 % 97) / 97 - ($2 - 3) ^ 2 "}"}'\n`);
    run(racecars, "run", "-p", "x=0:10", "-p", "y=5", "--noise", "yes", "--budget", "60", "--jobs", "1", "--maximize", "json:score", "--study", study, "--", "sh", script, "{x}", "{seed}", "{y}");
    const page = await open(`file://${join(study, "report.html")}`);
    assert.match(await page.locator("#subline").textContent(), /^maximize json:score · 1 parameter · /);
    assert.equal(await page.locator("#best h2").textContent(), "Recommended point");
    assert.match(await page.locator("#best > p").first().textContent(), /rial \d+: \S+, the mean of \d+ evaluations/);
    const rows = await page.locator("#best tbody tr").allTextContents();
    assert.ok(rows.some((row) => row === "y5fixed"), `${rows}`);
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
    await page.waitForFunction(() => document.querySelectorAll("section").length === 11);
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
