// The table of trials: sorted by a column, filtered by conditions, a page at a time.

/** How many rows a page has. */
const PAGE = 25;

/** The columns, unpacked once for each new data. */
function unpackTable(packed) {
  const bytes = (text) => Uint8Array.from(atob(text || ""), (c) => c.charCodeAt(0));
  const floats = (text) => new Float32Array(bytes(text).buffer);
  return {
    rows: packed.rows, parameters: packed.parameters,
    trial: new Uint32Array(bytes(packed.trial).buffer), value: floats(packed.value), violation: floats(packed.violation),
    seconds: floats(packed.seconds), status: bytes(packed.status), places: floats(packed.places),
  };
}

const outcomes = ["value", "infeasible", "failed"];

/** The columns of the table: what to show, and a number to sort and compare by. */
function tableColumns(data) {
  const { table } = data;
  const number = (x) => (Number.isNaN(x) ? "" : short(x, 6));
  const columns = [
    { key: "trial", name: "Trial", kind: "number", at: (i) => table.trial[i], text: (i) => `${table.trial[i]}` },
    { key: "value", name: "Value", kind: "number", at: (i) => table.value[i], text: (i) => number(table.value[i]) },
    { key: "outcome", name: "Outcome", kind: "", at: (i) => table.status[i], text: (i) => (table.status[i] === 1 && table.violation.length ? `infeasible by ${short(table.violation[i], 3)}` : outcomes[table.status[i]]) },
    { key: "seconds", name: "Seconds", kind: "number", at: (i) => table.seconds[i], text: (i) => short(table.seconds[i], 3) },
  ];
  for (let k = 0; k < table.parameters; k++) {
    const parameter = data.parameters[k];
    const place = (i) => table.places[k * table.rows + i];
    // Values of lists are compared by their texts, numbers by what they show.
    const isList = parameter.labels.length > 0;
    columns.push({
      key: parameter.name, name: parameter.name, kind: isList ? "" : "number", isList, at: place, text: (i) => valueAt(parameter, place(i), 5),
    });
  }
  return columns;
}

const asNumber = (text) => Number(text.replaceAll(MINUS, "-").replaceAll("\u202f", ""));

/** A filter such as `x < 3, mode = fast, failed` as a function of a row, or the part that it is not. */
function tableFilter(text, columns) {
  const tests = [];
  for (const part of text.split(",").map((part) => part.trim()).filter(Boolean)) {
    const [, name, sign, wanted] = part.match(/^(.+?)\s*(<=|>=|!=|<|>|=)\s*(.*)$/) || [];
    if (!name) {
      const word = part.toLowerCase();
      tests.push((i) => columns.some((column) => column.text(i).toLowerCase().includes(word)));
      continue;
    }
    const column = columns.find((column) => column.key.toLowerCase() === name.toLowerCase());
    if (!column) return { wrong: `There is no column ${name}.` };
    if (wanted === "") return { wrong: `${part} is not finished.` };
    const number = Number(wanted);
    if (column.isList || Number.isNaN(number)) {
      if (sign !== "=" && sign !== "!=" && !(column.isList && !Number.isNaN(number))) return { wrong: `${part}: ${wanted} is not a number.` };
      const same = (i) => column.text(i).toLowerCase() === wanted.toLowerCase();
      if (sign === "=") tests.push(same);
      else if (sign === "!=") tests.push((i) => !same(i));
      else tests.push((i) => compare(asNumber(column.text(i)), sign, number));
      continue;
    }
    // What is shown is what is compared, so that a value that is copied from the table is found.
    tests.push((i) => column.text(i) !== "" && compare(sign === "=" || sign === "!=" ? asNumber(column.text(i)) : exact(column, i), sign, number));
  }
  return { test: (i) => tests.every((test) => test(i)) };
}

const exact = (column, i) => (["trial", "value", "seconds"].includes(column.key) ? column.at(i) : asNumber(column.text(i)));
function compare(a, sign, b) {
  return { "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "=": a === b, "!=": a !== b }[sign];
}

function tableSection(data) {
  const { table, state } = data;
  const columns = tableColumns(data);
  const body = el("div", {});
  const fill = () => {
    const { test, wrong } = tableFilter(choices.filter, columns);
    const found = [];
    if (test) for (let i = 0; i < table.rows; i++) if (test(i)) found.push(i);
    const sorted = columns.find((column) => column.key === choices.sort) || columns[0];
    const sign = choices.down ? -1 : 1;
    // Rows without a value come last, whichever way it is sorted.
    const order = (a, b) => {
      const [x, y] = [sorted.at(a), sorted.at(b)];
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a - b;
      return sign * (x - y) || a - b;
    };
    found.sort(order);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    choices.page = Math.max(0, Math.min(pages - 1, choices.page));
    const shown = found.slice(choices.page * PAGE, (choices.page + 1) * PAGE);
    const head = columns.map((column) => {
      const is = column === sorted;
      const again = is ? !choices.down : data.study.direction === "maximize" && column.key === "value";
      return el("th", { scope: "col", class: column.kind, "aria-sort": is ? (choices.down ? "descending" : "ascending") : "none" },
        el("button", { type: "button", class: "sort", id: `sort-${column.key}`, onclick: () => { [choices.sort, choices.down, choices.page] = [column.key, again, 0]; refill(`sort-${column.key}`); } },
          column.name, el("i", { "aria-hidden": "true" }, is ? (choices.down ? " \u25be" : " \u25b4") : "")));
    });
    const rows = shown.map((i) => el("tr", { class: outcomes[table.status[i]] }, columns.map((column) => el("td", { class: column.kind }, column.text(i)))));
    const turn = (id, text, by, off) => el("button", { type: "button", id, disabled: off, onclick: () => { choices.page += by; refill(id); } }, text);
    const range = found.length ? `${whole(choices.page * PAGE + 1)} to ${whole(choices.page * PAGE + shown.length)} of ${whole(found.length)}` : wrong || "No trial matches.";
    body.replaceChildren(
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Trials" }, el("table", { class: "trials" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows))),
      el("div", { class: "controls pages" }, turn("earlier", "Previous", -1, choices.page === 0), turn("later", "Next", 1, choices.page >= pages - 1), el("span", { class: "muted", role: "status" }, range)));
  };
  const refill = (id) => {
    const left = body.firstChild.scrollLeft;
    fill();
    body.firstChild.scrollLeft = left;
    if ($(id)) $(id).focus({ preventScroll: true });
  };
  const first = data.parameters[0];
  const example = !first ? "" : first.labels.length ? `${first.name} = ${first.labels[0]}, ` : `${first.name} > ${valueAt(first, 0.5, 2)}, `;
  const box = el("input", {
    type: "search", id: "filter", placeholder: `value < 3, ${example}failed`, "aria-label": "Filter trials", value: choices.filter, autocomplete: "off",
    oninput: (event) => { [choices.filter, choices.page] = [event.target.value, 0]; fill(); },
  });
  const left = state.told - table.rows;
  const some = left > 0 ? `${whole(table.rows)} of ${whole(state.told)} trials: the best, and an even choice of the others. All are in racecars export --to csv. ` : "";
  const few = data.study.dimension > table.parameters ? `Of the parameters it has the ${whole(table.parameters)} most important. ` : "";
  fill();
  return section("trials", "Trials", `${some}${few}A click on a column sorts by it. Conditions are separated by commas.`,
    el("div", { class: "controls" }, box), body);
}
