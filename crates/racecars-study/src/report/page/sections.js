// The parts of the page, from its data. What a reader has chosen (scales, search) lives in `choices`
// and outlives new data.

const choices = { over: "evaluations", log: "auto", axes: "auto", search: "", more: 0, filter: "", sort: "trial", down: false, page: 0 };
/** How many parameters are shown at once, and how many the parallel coordinates have room for. */
const SHOWN = 20;
const AXES = 12;

const stopWords = {
  evaluations: "budget used up", target: "target reached", time: "time is up",
  interrupted: "stopped by hand", exhausted: "nothing left to try", "first-failures": "the first evaluations all failed",
};

function renderHead(data) {
  const { study, state } = data;
  $("name").textContent = study.name;
  const badge = $("badge");
  const lost = live.state === "lost";
  badge.className = `badge ${lost ? "lost" : live.state === "on" && state.state === "running" ? "running" : ""}`;
  badge.textContent = lost
    ? "connection lost, trying again"
    : state.state === "waiting" ? "waiting for the study to begin"
    : state.state === "stopped" ? `stopped: ${stopWords[state.stop] || state.stop || "done"}`
    : live.state === "on" ? "running" : "not finished";
  if (!study.begun) {
    $("subline").textContent = "Nothing has been evaluated yet. This page fills itself when the study runs.";
    return;
  }
  const constraints = (study.constraints || []).map((source) => `${metric(source)} at most 0`);
  const parts = [
    `${study.direction === "maximize" ? "maximize" : "minimize"} ${study.objective ? metric(study.objective) : "the objective"}`, ...constraints,
    `${whole(study.dimension)} parameter${study.dimension === 1 ? "" : "s"}`,
    study.algorithm, `seed ${study.seed}`, `${study.jobs} job${study.jobs === 1 ? "" : "s"}`,
  ];
  if (data.known) parts.push(`${whole(data.known.count)} known point${data.known.count === 1 ? "" : "s"}`);
  if (study.started) parts.push(`begun ${moment(study.started)}`);
  $("subline").textContent = parts.join(" · ");
}

// Where a value is found, in words where its text says little.
const metric = (source) => ({ last: "the last number printed", time: "the run time", stderr: "the last number on standard error" })[source] || source || "";

// How many evaluations are behind a value.
const times = (count) => (count > 1 ? `the mean of ${whole(count)} evaluations` : "a single evaluation");

function renderTiles(data) {
  const { state, study, best, recommended } = data;
  const tile = (label, figure, detail, extra) => el("div", { class: "tile" },
    el("div", { class: "label" }, label), el("div", { class: "figure", title: figure }, figure),
    extra || null, el("div", { class: "detail" }, detail));
  if (!study.begun) return $("tiles").replaceChildren();
  const rate = state.seconds > 0 ? state.told / state.seconds : 0;
  const done = study.budget ? Math.min(1, state.told / study.budget) : 0;
  const bar = el("div", { class: "bar" }, el("i", { style: { width: `${100 * done}%` } }));
  const bestDetail = !best ? "no value yet"
    : best.violation !== null ? `infeasible by ${short(best.violation)}`
    : recommended ? `seen in trial ${best.trial}; recommended: ${short(recommended.value, 5)} in trial ${recommended.trial}, ${times(recommended.evaluations)}`
    : `trial ${best.trial}`;
  const failed = state.told ? state.failed / state.told : 0;
  const left = study.budget && rate > 0 && state.state === "running" ? (study.budget - state.told) / rate : 0;
  $("tiles").replaceChildren(
    tile(study.direction === "maximize" ? "Best value (highest)" : "Best value (lowest)", best && best.value !== null ? short(best.value, 7) : "none", bestDetail),
    tile("Evaluations", whole(state.told), study.budget ? `of ${whole(study.budget)} planned` : "no budget set", study.budget ? bar : null),
    tile("Failed", whole(state.failed), state.told ? percent(failed) + (state.infeasible ? `, ${whole(state.infeasible)} infeasible` : "") : ""),
    tile("Running time", duration(state.seconds), rate ? `${short(rate, 3)} per second${left > 1 ? `, ${duration(left)} left` : ""}` : ""),
    tile("Since improvement", state.since === null ? "none" : whole(state.since), state.since === null ? "no value yet" : "evaluations"),
  );
}

function renderWarnings(data) {
  const words = { bad: "Problem", warn: "Warning", note: "Note" };
  const items = data.warnings.map(({ level, title, text }) => el("li", { class: level },
    el("span", { class: "level" }, words[level]), el("p", {}, el("strong", { style: { color: "var(--ink)" } }, title), text)));
  $("warnings").replaceChildren(...(items.length ? [el("ul", { class: "warnings", "aria-label": "Warnings" }, items)] : []));
}

/** The parameters to show: those that match the search, or the most important. */
function selected(data) {
  const all = data.parameters.map((_, i) => i);
  const words = choices.search.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const found = words.length ? all.filter((i) => words.some((word) => data.parameters[i].name.toLowerCase().includes(word))) : all;
  return { found, shown: found.slice(0, SHOWN * (1 + choices.more)) };
}

function section(id, title, text, ...content) {
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), text ? el("p", {}, text) : null, ...content);
}

function radios(name, title, options, value = choices[name]) {
  return el("fieldset", {}, el("legend", {}, title), el("span", { class: "switch" }, options.map(([option, text]) =>
    el("label", {}, el("input", {
      type: "radio", name, value: option, checked: option === value,
      onchange: () => { choices[name] = option; redraw(); },
    }), text))));
}

const legend = (...items) => el("div", { class: "legend", "aria-hidden": "true" }, items.filter(Boolean).map(([kind, colour, text]) =>
  el("span", {}, el("i", { class: kind, style: kind === "ramp" ? {} : { background: `var(--${colour})` } }), text)));

const nothing = (text) => el("p", { class: "empty" }, text);

function convergenceSection(data, width) {
  const drawn = convergence(data, width, choices);
  const y = valueAxis(data, "linear");
  const text = drawn && valueAxis(data, choices.log).isGap ? `How far values are from the best one, ${short(data.best.value, 8)}, which stands at the bottom. The scale is logarithmic.` : null;
  return section("convergence", "Convergence", text,
    el("div", { class: "controls" },
      radios("over", "Over", [["evaluations", "evaluations"], ["time", "time"]]),
      radios("log", "Scale", [["auto", "automatic"], ["linear", "linear"], y && y.canLog && ["log", "log"], gapAxis(data, 6) && ["gap", "distance to best"]].filter(Boolean))),
    drawn || nothing("No value yet."),
    drawn && legend(["line", "best", "best so far"], ["", "value", "an evaluation"], data.state.infeasible && ["", "infeasible", "infeasible"], data.state.failed && ["cross", "failed", `failed (at the ${data.study.direction === "maximize" && choices.log !== "gap" ? "bottom" : "top"})`], drawn && valueAxis(data, choices.log).isCut && ["triangle", "value", "beyond the scale"]));
}

function bestSection(data) {
  const { best, recommended, known, study } = data;
  const better = known && known.better ? el("p", {}, `A point that was known without an evaluation is better: ${short(known.better.value, 10)} at ${known.better.point}.`) : null;
  if (!best) return section("best", "Best point", null, better || nothing("No value yet."));
  const byName = new Map(data.parameters.map((parameter) => [parameter.name, parameter]));
  const chosen = recommended || best;
  const rows = chosen.assignments.map(([name, value, place]) => {
    const parameter = byName.get(name);
    const ends = parameter && parameter.ordered;
    return el("tr", {}, el("td", {}, name), el("td", { class: "number" }, value.replace(/^-/, MINUS)),
      el("td", { class: "where" }, parameter && ends ? [
        el("div", { class: "track" }, el("i", { style: { left: `${100 * place}%` } })),
        el("div", { class: "ends" }, el("span", {}, valueAt(parameter, 0)), el("span", {}, valueAt(parameter, 1))),
      ] : parameter ? el("span", { class: "muted" }, `one of ${parameter.labels.slice(0, 8).join(", ")}${parameter.count > 8 ? ", \u2026" : ""}`) : place === null ? el("span", { class: "muted" }, "fixed") : typeof place === "string" ? el("span", { class: "muted" }, place) : null));
  });
  const table = (part) => el("table", {}, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Parameter"), el("th", { scope: "col", class: "number" }, "Value"), el("th", { scope: "col" }, "Within its range"))), el("tbody", {}, part));
  const rest = rows.slice(SHOWN);
  const { left } = chosen;
  const value = best.violation !== null ? `infeasible by ${short(best.violation, 6)}` : short(best.value, 10);
  const seen = `trial ${best.trial}: ${value}, ${times(study.repeat)}, the best of ${whole(data.state.told)}`;
  const text = recommended && recommended.trial === best.trial
    ? `Trial ${recommended.trial}: ${short(recommended.value, 10)}, ${times(recommended.evaluations)}; the best value seen is ${value}.`
    : recommended
    ? `Recommended is trial ${recommended.trial}: ${short(recommended.value, 10)}, ${times(recommended.evaluations)}. The best value seen is that of ${seen}; it may be lower by chance.`.replace("lower", study.direction === "maximize" ? "higher" : "lower")
    : `${seen[0].toUpperCase()}${seen.slice(1)}; it came as number ${whole(best.order + 1)}.`;
  return section("best", recommended ? "Recommended point" : "Best point", text, better,
    table(rows.slice(0, SHOWN)),
    rest.length ? el("details", {}, el("summary", {}, `${whole(rest.length)} more parameters`), table(rest)) : null,
    left > 0 ? el("p", {}, `and ${whole(left)} more, in the journal`) : null);
}

function portfolioSection(data) {
  const { portfolio } = data;
  if (!portfolio) return null;
  const head = (text, kind) => el("th", { scope: "col", class: kind || "" }, text);
  const cell = (text) => el("td", { class: "number" }, text);
  const rows = portfolio.members.map((member) => el("tr", {}, el("td", {}, member.name), cell(whole(member.evaluations)), cell(whole(member.improvements)), cell(member.best === null ? "none" : short(member.best, 6))));
  const decisions = portfolio.decisions.map((decision) => el("tr", {}, cell(whole(decision.at)), el("td", {}, decision.what)));
  return section("portfolio", "Who found it", "The members of the portfolio, what each achieved, and why the evaluations went where they did.",
    el("table", {}, el("thead", {}, el("tr", {}, head("Member"), head("Evaluations", "number"), head("Improvements", "number"), head("Best", "number"))), el("tbody", {}, rows)),
    el("table", { style: { marginTop: "1rem" } }, el("thead", {}, el("tr", {}, head("At", "number"), head("Decision"))), el("tbody", {}, decisions)));
}

function importanceSection(data, shown) {
  const { possible, explained, used, parameters } = data.importance;
  const text = possible
    ? `How much of the differences between evaluations of about the same time comes from each parameter, alone or together with others. Together they explain ${percent(explained)}, from ${whole(used)} evaluations; the rest is noise or too fine to tell.${data.parameters.some((p) => p.importance === 0 && !p.idle) ? " Not seen: too small to tell from noise, or it hardly changed." : ""}`
    : null;
  if (!possible) return section("importance", "Importance", null, nothing("Importance needs some forty evaluations that gave a value."));
  if (!explained) return section("importance", "Importance", null, nothing("No effect of a parameter stands out from noise yet."));
  const most = Math.max(...data.parameters.map((p) => p.importance || 0), 1e-9);
  const bars = shown.flatMap((i) => {
    const { name, importance } = data.parameters[i];
    return [el("dt", {}, name), el("dd", {}, el("div", { class: "track" }, el("i", { style: { width: `${(100 * (importance || 0)) / most}%` } }))),
      el("dd", { class: "number" }, importanceText(data, i))];
  });
  const hidden = parameters > data.parameters.length ? el("p", {}, `This page has the ${whole(data.parameters.length)} most important of ${whole(parameters)} parameters.`) : null;
  return section("importance", "Importance", text, el("dl", { class: "bars" }, bars), hidden);
}

function multiples(indices, width, draw, caption, isWide = () => false) {
  // Few charts share the width; many stand in a grid.
  const fit = Math.max(1, Math.floor((width + 24) / (248 + 24)));
  const rows = Math.ceil(indices.length / fit);
  const columns = Math.min(fit, rows > 2 ? fit : Math.max(2, Math.ceil(indices.length / rows)));
  const each = Math.floor((width - 24 * (columns - 1)) / columns);
  return el("div", { class: "multiples", style: { gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` } }, indices.map((i) => {
    const isWhole = isWide(i, each - 52);
    return el("figure", isWhole ? { style: { gridColumn: "1 / -1" } } : {}, el("figcaption", {}, caption(i)), draw(i, isWhole ? width : each));
  }));
}

const importanceText = (data, i) => {
  const { importance, idle } = data.parameters[i];
  if (importance === null) return "";
  return importance ? percent(importance, importance < 0.1 ? 1 : 0) : idle ? "no effect" : "not seen";
};

function slicesSection(data, shown, width) {
  const y = valueAxis(data, choices.log, 4);
  if (!y) return section("slices", "Slices", null, nothing("No value yet."));
  for (const tick of y.ticks) tick.text = y.log && tick.at < 0.01 ? tick.at.toExponential(0).replace("-", MINUS) : short(tick.at, 3);
  return section("slices", "Slices", "Values over one parameter at a time. Where the cloud bends, the parameter matters; where it is flat, it does not.",
    multiples(shown, width, (i, each) => slice(data, i, each, y), (i) => [el("h3", {}, data.parameters[i].name), el("span", {}, importanceText(data, i))], (i, room) => isMany(data.parameters[i], room)),
    legend(["ramp", "", "early to late"], ["diamond", "best", "best"], data.state.infeasible && ["", "infeasible", "infeasible"], data.state.failed && ["cross", "failed", "failed"], y.isCut && ["triangle", "value", "beyond the scale"]));
}

function feasibilitySection(data, shown, width) {
  const { infeasible, told, failed } = data.state;
  if (!infeasible) return null;
  const names = data.study.constraints.length ? ` (${data.study.constraints.join(", ")})` : "";
  return section("feasibility", "Feasibility", `${percent(infeasible / (told - failed))} of the trials violate a constraint${names}. The share of those that violate none, over one parameter at a time: where it falls, feasibility ends.`,
    multiples(shown, width, (i, each) => feasibilityChart(data, i, each), (i) => [el("h3", {}, data.parameters[i].name), el("span", {}, "")], (i, room) => isMany(data.parameters[i], room)),
    legend(["block", "value", "feasible"], ["block", "infeasible", "infeasible"], ["diamond", "best", "best"]));
}

function regionSection(data, shown, width) {
  const { region } = data;
  const isRegion = region && region.source === "region";
  const share = isRegion ? region.share[region.share.length - 1] : null;
  const text = !region ? "What was tried of each parameter, over time."
    : isRegion ? `The region that the search confined itself to, over evaluations, found by replaying the study. It shrinks around the best point; at the end it kept ${percent(share, share < 0.1 ? 1 : 0)} of every range.${data.parameters.some((parameter) => !parameter.ordered) ? " Of choices without an order it keeps a random part." : ""}`
    : "The range of nine tenths of what was tried, over evaluations.";
  return section("region", "Region", text,
    multiples(shown, width, (i, each) => regionChart(data, i, each), (i) => [el("h3", {}, data.parameters[i].name), el("span", {}, regionText(data, i))]),
    legend(region && ["block", "band", isRegion ? "searched region" : "nine tenths of proposals"], ["", "value", "an evaluation"], ["diamond", "best", "best"], data.state.failed && ["cross", "failed", "failed"]));
}

function regionText(data, i) {
  const { region } = data;
  const parameter = data.parameters[i];
  if (!region) return "";
  const count = region.told.length;
  if (!parameter.ordered) {
    if (region.source !== "region") return "";
    return `${Math.max(1, Math.ceil(region.share[count - 1] * parameter.count))} of ${parameter.count} choices`;
  }
  const end = (i + 1) * count - 1;
  return `${valueAt(parameter, data.low[end] + 1e-6)} to ${valueAt(parameter, data.high[end] - 1e-6)}`;
}

function parallelSection(data, shown, width) {
  const axes = shown.slice(0, AXES);
  const zoom = choices.axes === "auto" ? (isNarrow(data, axes) ? "zoomed" : "whole") : choices.axes;
  const drawn = parallel(data, axes, width, zoom === "zoomed");
  const count = data.sample.tenth.reduce((sum, x) => sum + x, 0);
  return section("tenth", "The best tenth", drawn ? `${count < data.state.values / 11 ? `${whole(count)} of the ${whole(data.state.values / 10)}` : `The ${whole(count)}`} best evaluations, each a line through ${axes.length < shown.length ? `the first ${axes.length} parameters` : "its parameters"}. Where lines meet, good points agree.` : null,
    drawn && el("div", { class: "controls" }, radios("axes", "Axes", [["whole", "whole ranges"], ["zoomed", "where the best are"]], zoom)),
    drawn || nothing("This needs some more evaluations."),
    drawn && legend(["ramp", "", "good to better"], ["line", "best", "best of them"]));
}

function failureSection(data, width) {
  const { kinds } = data.failures || { kinds: [] };
  if (!kinds.length && !data.state.infeasible) return section("failures", "Failures", null, nothing("None."));
  const rows = [...kinds].sort((a, b) => b.count - a.count).map(({ kind, words, count, examples }) => el("tr", {},
    el("td", {}, words[0].toUpperCase() + words.slice(1)), el("td", { class: "number" }, whole(count)), el("td", { class: "number" }, percent(count / data.state.told)),
    el("td", {}, examples.map(({ trial, detail, stderr }) => {
      const title = `trial ${trial}${detail ? `: ${detail}` : ""}`;
      return stderr ? el("details", { "data-key": `${kind}-${trial}` }, el("summary", {}, title), el("pre", {}, stderr.trimEnd())) : el("div", {}, title);
    }))));
  const linked = (data.failures.associations || []).map((part) => el("tr", {}, el("td", {}, part.name), el("td", {}, part.part),
    el("td", { class: "number" }, `${percent(part.failed / part.count)} of ${whole(part.count)}`), el("td", { class: "number" }, `${percent(part.failed_elsewhere / part.count_elsewhere)} of ${whole(part.count_elsewhere)}`)));
  return section("failures", "Failures", data.state.retried ? `${whole(data.state.retried)} evaluations were tried more than once.` : null,
    failureChart(data, width),
    legend(data.state.failed && ["block", "failed", "failed"], data.state.infeasible && ["block", "infeasible", "infeasible"]),
    rows.length ? el("table", { style: { marginTop: "1rem" } }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Kind"), el("th", { scope: "col", class: "number" }, "Count"), el("th", { scope: "col", class: "number" }, "Share"), el("th", { scope: "col", style: { width: "60%" } }, "Examples"))), el("tbody", {}, rows)) : null,
    linked.length ? [el("h3", { style: { marginTop: "1.4rem" } }, "What they go with"), el("p", {}, "The part of each parameter's range in which evaluations fail most, where it is no accident."),
      el("table", { id: "linked" }, el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Parameter"), el("th", { scope: "col" }, "Where"), el("th", { scope: "col", class: "number" }, "Failed there"), el("th", { scope: "col", class: "number" }, "Failed elsewhere"))), el("tbody", {}, linked))] : null);
}

function timelineSection(data, width) {
  const { workers, more, busy, resumed } = data.timeline;
  if (!workers.length) return section("workers", "Workers", null, nothing("The journal has no times."));
  const text = `Busy ${percent(busy)} of the time.${resumed.length ? ` Dashed lines: the study went on after an interruption, which is cut out.` : ""}${more ? ` ${whole(more)} more workers are not drawn.` : ""}`;
  return section("workers", "Workers", text, timelineChart(data, width), legend(["block", "value", "value"], data.state.infeasible && ["block", "infeasible", "infeasible"], data.state.failed && ["block", "failed", "failed"]));
}

function copyable(title, text) {
  const button = el("button", { type: "button", onclick: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  } }, "Copy");
  // Lines break between words only: a flag cut in two is hard to read.
  const pre = el("pre", {}, text.split(/(\s+)/).map((word) => (/^\S{1,40}$/.test(word) ? el("span", { class: "word" }, word) : word)));
  return [el("div", { class: "copy" }, el("h3", {}, title), button), pre];
}

function reproduceSection(data) {
  const { study, best, recommended } = data;
  const point = (chosen) => JSON.stringify(chosen.point, null, 1).replace(/\n {2,}/g, " ").replace(/\n ?\]/g, "]");
  const other = recommended && best && recommended.trial !== best.trial;
  const settings = [`racecars ${study.version}`, `algorithm ${study.algorithm}`, `seed ${study.seed}`, study.budget ? `budget ${study.budget}` : "no budget", `jobs ${study.jobs}`, study.deterministic ? "deterministic" : "not deterministic"];
  const again = study.deterministic || study.jobs === 1
    ? "The same settings and seed give the same run, as long as the program does."
    : "With several jobs the order of evaluations depends on their times; with --deterministic the same seed gives the same run.";
  return section("reproduce", "Reproduce", `${study.base ? `Commands are for the folder ${study.base}. ` : ""}${again}`,
    other && recommended.command ? copyable(`The recommended command (trial ${recommended.trial})`, recommended.command) : null,
    best && best.command ? copyable(`The best command (trial ${best.trial})`, best.command) : null,
    other ? copyable(`The recommended point (trial ${recommended.trial})`, point(recommended)) : null,
    best ? copyable(`The best point (trial ${best.trial})`, point(best)) : null,
    study.run ? copyable("The study, from the beginning", study.run) : null,
    !study.continue ? null
      : data.state.stop === "evaluations" ? copyable("To go on with twice the budget", `${study.continue} --budget ${2 * study.budget}`)
      : ["target", "exhausted"].includes(data.state.stop) ? null : copyable("To go on with it", study.continue),
    copyable("Settings", settings.join("\n")));
}

function picker(data) {
  const { found, shown } = selected(data);
  const box = el("input", {
    type: "search", id: "search", placeholder: "Search parameters", "aria-label": "Search parameters", value: choices.search, autocomplete: "off",
    oninput: (event) => { choices.search = event.target.value; choices.more = 0; redrawSoon(); },
  });
  const total = data.parameters.length;
  const text = found.length === 0 ? "No parameter matches"
    : shown.length < found.length ? `${shown.length} of ${whole(found.length)}${choices.search ? " that match" : ""}, by importance`
    : choices.search ? `${found.length} of ${whole(total)}` : `all ${total}, by importance`;
  return el("div", { class: "controls sticky" }, box, el("span", { class: "muted", role: "status" }, text),
    shown.length < found.length ? el("button", { type: "button", id: "more", onclick: () => { choices.more += 1; redraw(); } }, `Show ${Math.min(SHOWN, found.length - shown.length)} more`) : null,
    choices.more ? el("button", { type: "button", id: "fewer", onclick: () => { choices.more = 0; redraw(); } }, "Show fewer") : null);
}
