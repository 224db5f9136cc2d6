// The page's life: draw, redraw when its size, its colours or its data change, and follow a study.

/** "off" in a report; in a live page "on" or "lost". */
const live = { state: "off" };
let data = null;

function adopt(fresh) {
  fresh.places = unpack(fresh.sample.places);
  fresh.low = unpack(fresh.region && fresh.region.low);
  fresh.high = unpack(fresh.region && fresh.region.high);
  fresh.table = unpackTable(fresh.table);
  fresh.rowOf = new Map(fresh.sample.order.map((order, i) => [order, i]));
  data = fresh;
}

function redraw() {
  if (!data) return;
  readColours();
  hideTip();
  renderHead(data);
  renderTiles(data);
  renderWarnings(data);
  const host = $("sections");
  const width = Math.floor(host.getBoundingClientRect().width);
  // What the reader is doing survives: what is focused, what is unfolded.
  const focus = document.activeElement && host.contains(document.activeElement) ? document.activeElement : null;
  const held = focus && { id: focus.id, name: focus.name, value: focus.value, start: focus.selectionStart };
  const open = new Set([...host.querySelectorAll("details[open][data-key]")].map((d) => d.dataset.key));
  if (!data.study.begun) {
    host.replaceChildren(nothing("Waiting for the study to begin. Start it with: racecars run"));
    $("nav").replaceChildren();
  } else if (!data.state.told) {
    host.replaceChildren(nothing("Nothing has been evaluated yet."), reproduceSection(data));
    $("nav").replaceChildren();
  } else {
    const { shown } = selected(data);
    const parts = [
      convergenceSection(data, width),
      bestSection(data),
      portfolioSection(data),
      el("div", { id: "parameters" }, data.parameters.length > 3 ? picker(data) : null,
        importanceSection(data, shown), slicesSection(data, shown, width), feasibilitySection(data, shown, width),
        parallelSection(data, shown, width), regionSection(data, shown, width)),
      tableSection(data),
      failureSection(data, width),
      timelineSection(data, width),
      reproduceSection(data),
    ];
    host.replaceChildren(...parts.filter(Boolean));
    const links = [...host.querySelectorAll("section")].map((part) => el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent));
    if ($("nav").children.length !== links.length) $("nav").replaceChildren(...links);
  }
  host.querySelectorAll("details[data-key]").forEach((d) => (d.open = open.has(d.dataset.key)));
  if (held) {
    const again = held.id ? $(held.id) : held.name ? host.querySelector(`[name="${held.name}"][value="${held.value}"]`) : null;
    if (again) {
      again.focus({ preventScroll: true });
      if (again.type === "search") again.setSelectionRange(held.start, held.start);
    }
  }
  $("foot").textContent = `racecars ${data.study.version || ""} · ${live.state === "off" ? "written" : "as of"} ${moment(data.generated)}`;
}

let pending = 0;
function redrawSoon() {
  clearTimeout(pending);
  pending = setTimeout(redraw, 150);
}

adopt(JSON.parse($("data").textContent));
if (document.documentElement.dataset.live) {
  live.state = "on";
  const source = new EventSource("/events");
  source.addEventListener("data", (event) => {
    live.state = "on";
    adopt(JSON.parse(event.data));
    redraw();
  });
  source.addEventListener("open", () => {
    live.state = "on";
    renderHead(data);
  });
  source.addEventListener("error", () => {
    live.state = "lost";
    renderHead(data);
  });
}
redraw();
let drawnAt = $("sections").getBoundingClientRect().width;
addEventListener("resize", () => {
  const width = $("sections").getBoundingClientRect().width;
  if (Math.abs(width - drawnAt) > 1) {
    drawnAt = width;
    redrawSoon();
  }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
