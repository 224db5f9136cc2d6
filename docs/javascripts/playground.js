// The playground: four searches on one function of two coordinates. The searches run in WebAssembly
// (crates/racecars-playground), whose bytes playground-module.js has as text, so that the page also works when it is
// opened as a file. This script steps through them and draws.
"use strict";
(() => {
  // Okabe and Ito's colours, which are told apart by nearly everybody.
  const COLORS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];
  const ALGORITHMS = ["auto", "race-cars", "cma-es", "random"];
  // Cividis, from low values to high ones.
  const SHADES = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]];
  const SIDE = 200; // points of the landscape along one side
  const PIXELS = 600; // of a picture, along one side
  const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200]; // evaluations a second
  const FIRST_SPEED = 3;

  const root = document.getElementById("searches");
  if (!root) return;

  /** The module: a function from a request to its answer. */
  async function open(text) {
    if (!text) throw new Error("this site was built without the compiler's part for WebAssembly");
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const { instance } = await WebAssembly.instantiate(bytes, {});
    const { memory, request, answer, answer_at: answerAt } = instance.exports;
    const [encoder, decoder] = [new TextEncoder(), new TextDecoder()];
    return (asked) => {
      const sent = encoder.encode(JSON.stringify(asked));
      const at = request(sent.length) >>> 0;
      new Uint8Array(memory.buffer, at, sent.length).set(sent);
      const length = answer() >>> 0;
      const got = JSON.parse(decoder.decode(new Uint8Array(memory.buffer, answerAt() >>> 0, length)));
      if (got.error) throw new Error(got.error);
      return got;
    };
  }

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  const labelled = (text, input) => {
    input.ariaLabel = text; // else its options are part of its name
    return element("label", {}, element("span", { textContent: text }), input);
  };
  const option = ({ name, about }) => element("option", { value: name, textContent: name, title: about });

  function shade(share) {
    const at = share * (SHADES.length - 1);
    const [low, high] = [SHADES[Math.floor(at)], SHADES[Math.ceil(at)]];
    return low.map((from, i) => from + (at - Math.floor(at)) * (high[i] - from));
  }

  /** A picture of the values. Colours go by rank, so that valleys show whatever their depth. */
  function paint(values) {
    const order = Float64Array.from(values).sort();
    const picture = element("canvas", { width: SIDE, height: SIDE });
    const context = picture.getContext("2d");
    const image = context.createImageData(SIDE, SIDE);
    values.forEach((value, i) => {
      let [low, high] = [0, order.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (order[middle] < value) low = middle + 1;
        else high = middle;
      }
      // The first row has the lowest second coordinate, which is drawn at the bottom.
      const at = 4 * ((SIDE - 1 - Math.floor(i / SIDE)) * SIDE + (i % SIDE));
      image.data.set([...shade(low / order.length), 255], at);
    });
    context.putImageData(image, 0, 0);
    return picture;
  }

  const short = (value) => (value === 0 ? "0" : Math.abs(value) >= 1e-3 && Math.abs(value) < 1e4 ? value.toPrecision(3) : value.toExponential(1));

  /** One search and its picture. */
  class Panel {
    constructor(number, algorithms) {
      this.number = number;
      this.choice = element("select", { ariaLabel: `algorithm ${number + 1}` }, ...algorithms.map(option));
      this.choice.value = ALGORITHMS[number];
      this.canvas = element("canvas", { width: PIXELS, height: PIXELS });
      this.canvas.setAttribute("role", "img");
      this.status = element("p", { className: "playground-status" });
      this.decisions = element("ol");
      this.details = element("details", { hidden: true }, element("summary", { textContent: "its decisions" }), this.decisions);
      this.element = element("section", {}, this.choice, this.canvas, this.status, this.details);
      this.element.style.setProperty("--color", COLORS[number]);
    }

    start(ask, settings) {
      ask({ what: "start", panel: this.number, algorithm: this.choice.value, ...settings });
      Object.assign(this, { points: [], bests: [], seen: null, budget: settings.budget });
    }

    isDone() {
      return Boolean(this.seen?.stopped) || this.points.length >= this.budget;
    }

    step(ask, evaluations) {
      if (this.isDone()) return;
      this.seen = ask({ what: "step", panel: this.number, evaluations });
      for (const point of this.seen.points) {
        this.points.push(point);
        this.bests.push(Math.min(point[2], this.bests.at(-1) ?? Infinity));
      }
    }

    draw(landscape, picture) {
      const context = this.canvas.getContext("2d");
      const [low, high] = landscape.range;
      const x = (value) => ((value - low) / (high - low)) * PIXELS;
      const y = (value) => PIXELS - x(value);
      const ring = (at, radius, width, color) => {
        context.beginPath();
        context.arc(x(at[0]), y(at[1]), radius, 0, 2 * Math.PI);
        Object.assign(context, { lineWidth: width, strokeStyle: color });
        context.stroke();
      };
      context.imageSmoothingEnabled = true;
      context.drawImage(picture, 0, 0, PIXELS, PIXELS);
      const newest = this.points.length - 1;
      this.points.forEach((point, i) => {
        context.beginPath();
        context.arc(x(point[0]), y(point[1]), i === newest ? 8 : 5, 0, 2 * Math.PI);
        // Older points fade, but stay.
        context.globalAlpha = Math.max(0.25, 1 - (newest - i) / 60);
        Object.assign(context, { fillStyle: i === newest ? "#ff3b30" : "#ffffff", strokeStyle: "#000000", lineWidth: 1 });
        context.fill();
        context.stroke();
      });
      context.globalAlpha = 1;
      ring(landscape.minimizer, 13, 6, "#000000");
      ring(landscape.minimizer, 13, 3, "#ffffff");
      const region = this.seen?.region;
      if (region && region.share < 1) {
        const [left, right, top, bottom] = [x(region.low[0]), x(region.high[0]), y(region.high[1]), y(region.low[1])];
        for (const [width, color] of [[7, "#000000"], [4, "#ffffff"]]) {
          Object.assign(context, { lineWidth: width, strokeStyle: color });
          context.strokeRect(left, top, right - left, bottom - top);
        }
      }
      const best = this.seen?.best_point;
      if (best) {
        for (const [width, color] of [[8, "#000000"], [4, COLORS[this.number]]]) {
          Object.assign(context, { lineWidth: width, strokeStyle: color });
          context.beginPath();
          for (const slope of [1, -1]) {
            context.moveTo(x(best[0]) - 12, y(best[1]) - 12 * slope);
            context.lineTo(x(best[0]) + 12, y(best[1]) + 12 * slope);
          }
          context.stroke();
        }
      }
      this.describe();
    }

    describe() {
      const { points, seen } = this;
      const parts = [`${points.length} evaluations`];
      if (points.length) parts.push(`best ${short(this.bests.at(-1))}`);
      if (seen?.region && seen.region.share < 1) parts.push(`region ${short(100 * seen.region.share)} %`);
      this.status.textContent = parts.join(", ");
      this.canvas.setAttribute("aria-label", `${this.choice.value}: ${parts.join(", ")}`);
      const decisions = seen?.decisions ?? [];
      this.details.hidden = !decisions.length;
      if (decisions.length !== this.decisions.childElementCount) {
        this.decisions.replaceChildren(...decisions.map(({ at, what }) => element("li", { textContent: `${at}: ${what}` })));
      }
    }
  }

  /** Best values by evaluations, on a logarithmic scale from the optimum, which is 0. */
  function chart(canvas, panels, budget) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, 220];
    Object.assign(canvas, { width: width * ratio, height: height * ratio });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const ink = getComputedStyle(canvas).color;
    const bests = panels.flatMap((panel) => panel.bests).filter((value) => value > 0);
    const top = Math.ceil(Math.log10(Math.max(1, ...bests)));
    const bottom = Math.max(-12, Math.min(top - 2, Math.floor(Math.log10(Math.min(1, ...bests)))));
    const [left, right, above, below] = [52, 12, 10, 34];
    const x = (evaluations) => left + ((width - left - right) * evaluations) / budget;
    const y = (power) => above + ((height - above - below) * (top - power)) / (top - bottom);
    Object.assign(context, { font: "12px system-ui, sans-serif", fillStyle: ink, strokeStyle: ink, textAlign: "right", textBaseline: "middle" });
    const every = Math.ceil((top - bottom) / 5);
    for (let power = bottom; power <= top; power += every) {
      context.globalAlpha = 0.2;
      context.beginPath();
      context.moveTo(left, y(power));
      context.lineTo(width - right, y(power));
      context.stroke();
      context.globalAlpha = 1;
      context.fillText(power >= -2 && power <= 3 ? String(Number((10 ** power).toPrecision(1))) : `1e${power}`, left - 6, y(power));
    }
    Object.assign(context, { textAlign: "center", textBaseline: "top" });
    for (const share of [0, 0.5, 1]) context.fillText(String(Math.round(share * budget)), Math.min(x(share * budget), width - 16), height - below + 4);
    context.fillText("evaluations; best value so far", (left + width - right) / 2, height - 14);
    Object.assign(context, { lineWidth: 2.5, lineJoin: "round" });
    panels.forEach((panel, number) => {
      context.strokeStyle = COLORS[number];
      context.beginPath();
      let before;
      panel.bests.forEach((value, i) => {
        const at = y(Math.max(bottom, value > 0 ? Math.log10(value) : bottom));
        if (i) context.lineTo(x(i + 1), before);
        context.lineTo(x(i + 1), at);
        before = at;
      });
      context.stroke();
    });
  }

  function run(ask) {
    const catalogue = ask({ what: "catalogue" });
    const problem = element("select", {}, ...catalogue.problems.map(option));
    const rotated = element("input", { type: "checkbox" });
    const jumps = element("input", { type: "checkbox" });
    const budget = element("input", { type: "number", min: 10, max: 2000, value: 150, required: true });
    const seed = element("input", { type: "number", min: 0, max: 1e9, value: 1, required: true });
    const speed = element("input", { type: "range", min: 0, max: SPEEDS.length - 1, value: FIRST_SPEED });
    const play = element("button", { type: "button", className: "md-button md-button--primary" });
    const once = element("button", { type: "button", className: "md-button", textContent: "One step" });
    const again = element("button", { type: "button", className: "md-button", textContent: "Restart" });
    const message = element("p", { className: "playground-message" });
    message.setAttribute("role", "status");
    const panels = COLORS.map((_, number) => new Panel(number, catalogue.algorithms));
    const curves = element("canvas", { className: "playground-curves" });
    curves.setAttribute("role", "img");
    curves.setAttribute("aria-label", "best value by evaluations, a line for each panel");
    const settings = element("form", { className: "playground-settings", onsubmit: (event) => event.preventDefault() },
      labelled("function", problem), labelled("rotated", rotated), labelled("jumps", jumps),
      labelled("evaluations", budget), labelled("seed", seed), labelled("speed", speed),
      element("div", {}, play, once, again));
    root.replaceChildren(settings, message,
      element("div", { className: "playground-panels" }, ...panels.map((panel) => panel.element)), curves);

    let landscape, picture, planned, playing = false, due = 0, last = 0;

    const say = (text) => (message.textContent = text);
    const show = () => {
      play.textContent = playing ? "Pause" : "Play";
      root.dataset.state = playing ? "playing" : panels.every((panel) => panel.isDone()) ? "done" : "ready";
    };
    const draw = () => {
      for (const panel of panels) panel.draw(landscape, picture);
      chart(curves, panels, planned);
    };
    // Whatever fails is said where one looks, and the last picture stays.
    const guarded = (act) => (...given) => {
      try {
        act(...given);
      } catch (error) {
        playing = false;
        show();
        say(`This does not go: ${error.message}`);
      }
    };
    const restart = guarded(() => {
      if (!settings.reportValidity()) return;
      say("");
      planned = Number(budget.value);
      const name = `${jumps.checked ? "stepped-" : ""}shifted-${rotated.checked ? "rotated-" : ""}${problem.value}`;
      const chosen = { problem: name, seed: Number(seed.value) };
      landscape = ask({ what: "landscape", side: SIDE, ...chosen });
      picture = paint(landscape.values);
      for (const panel of panels) panel.start(ask, { ...chosen, budget: planned });
      due = 0;
      show();
      draw();
    });
    const step = guarded((evaluations) => {
      for (const panel of panels) panel.step(ask, evaluations);
      if (panels.every((panel) => panel.isDone())) playing = false;
      show();
      draw();
    });
    const frame = (now) => {
      if (!playing) return;
      // A page that was in the background does not catch up; the first frame may be older than the click.
      due += (Math.max(0, Math.min(now - last, 200)) / 1000) * SPEEDS[Number(speed.value)];
      last = now;
      const whole = Math.floor(due);
      due -= whole;
      if (whole) step(whole);
      requestAnimationFrame(frame);
    };
    const begin = () => {
      if (panels.every((panel) => panel.isDone())) restart();
      playing = true;
      last = performance.now();
      show();
      requestAnimationFrame(frame);
    };

    play.onclick = () => {
      if (playing) {
        playing = false;
        show();
      } else begin();
    };
    once.onclick = () => {
      playing = false;
      step(1);
    };
    again.onclick = restart;
    for (const input of [problem, rotated, jumps, budget, seed, ...panels.map((panel) => panel.choice)]) input.onchange = restart;
    addEventListener("resize", () => landscape && chart(curves, panels, planned));

    restart();
    if (!matchMedia("(prefers-reduced-motion: reduce)").matches) begin();
  }

  open(PLAYGROUND_MODULE).then(run).catch((error) => {
    root.dataset.state = "failed";
    root.replaceChildren(element("p", { role: "status", textContent: `The playground cannot start: ${error.message}` }));
  });
})();
