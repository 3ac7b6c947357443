// Everything that is a table, and the curves of the search.

const IDLE_COLOURS = ["#66CCEE", "#228833", "#999933", "#004488", "#BB5566", "#DDAA33", "#CCBB44", "#AA3377", "#000000", "#eeeeee", "#ffffff"];
const BUSY = "#77AADD";

function cell(text, isNumber = false) {
  return element("td", {className: isNumber ? "number" : "name"}, text);
}
function heading(...names) {
  return element("thead", {}, element("tr", {}, ...names.map(name =>
    element("th", {className: name.startsWith("#") ? "number" : ""}, name.replace("#", "")))));
}
function bar(parts) {
  return element("div", {className: "bar"}, ...parts.filter(([share]) => share > 0).map(([share, colour, title]) => {
    const part = element("span", {title: `${title}: ${percent(share)}`});
    part.style.width = `${100 * share}%`;
    part.style.background = colour;
    return part;
  }));
}
function legend(box, entries) {
  box.replaceChildren(...entries.map(([colour, text]) => {
    const sample = element("i");
    sample.style.background = colour;
    return element("span", {}, sample, text);
  }));
}

class Tables {
  constructor(model, view, go) { Object.assign(this, {model, view, go}); }

  fill() {
    const {model} = this;
    byId("figures").append(...model.rows_of_answer.map(([name, value, remark]) =>
      element("tr", {}, element("th", {}, name), cell(value, true), cell(remark))));
    this.bounds();
    this.chain();
    this.traffic();
    this.cores();
    this.log();
  }

  rowOf(cells, act) {
    const row = element("tr", {tabIndex: 0}, ...cells);
    row.addEventListener("click", act);
    row.addEventListener("keydown", event => { if (event.key === "Enter") act(); });
    return row;
  }

  bounds() {
    const {model, view} = this, {parts} = model.words, colours = model.colours.parts;
    const links = model.chain.length === 1 ? "1 task" : `${exact(model.chain.length)} tasks and transfers`;
    const spent = model.chain_cycles.map((cycles, part) => [cycles, parts[part]]).filter(([cycles]) => cycles)
      .sort((a, b) => b[0] - a[0]).map(([cycles, part]) => `${percent(cycles / view.makespan)} ${part}`);
    byId("chain-text").textContent = model.behind ? "What is busy in a period. The timeline and the memory map show one, " +
      "as each is when many inferences overlap; what began in an earlier one is marked." : spent.length
      ? `The critical chain of ${links} takes the makespan: ${spent.join(", ")}.` : "There is nothing to run.";
    byId("chain-bar").append(bar(model.chain_cycles.map((cycles, part) => [cycles / view.makespan, colours[part], parts[part]])));
    byId("bindings").append(heading("#cycles", "#share", model.behind ? "busy" : "spent on"),
      element("tbody", {}, ...model.bindings.map(each => element("tr", {},
        cell(exact(each.cycles), true), cell(percent(each.cycles / view.makespan), true), cell(each.text)))));
  }

  chain() {
    const {model} = this, shown = model.chain.slice(-2000);
    byId("chain").hidden = Boolean(model.behind);
    byId("chain-table").append(heading("#start", "#cycles", "what", "where", "started when"),
      element("tbody", {}, ...shown.map(activity => {
        const [cause] = model.causesOf(activity), start = model.start(activity);
        const why = !cause ? "ready from the beginning" : cause.until < start
          ? `${exact(start - cause.until)} cycles unused` : this.plain(cause);
        return this.rowOf([cell(exact(start), true), cell(exact(model.end(activity) - start), true),
          cell(model.name(activity)), cell(model.where(activity)), cell(why)], () => this.go(activity, null));
      })));
  }
  plain(cause) {
    const {model} = this;
    const names = {activity: model.name(cause.activity), link: model.links[cause.link],
      residency: cause.residency === NONE ? "an operand" : model.residencyName(cause.residency)};
    return model.words.waits[cause.wait].replace(/\{(\w+)\}/g, (_, name) => names[name]);
  }

  traffic() {
    const rows = this.model.traffic, sum = name => rows.reduce((total, row) => total + row[name], 0);
    const all = sum("loaded") + sum("stored"), most = Math.max(1, ...rows.map(row => Math.max(row.loaded + row.stored, row.compulsory)));
    byId("traffic-text").textContent = `${bytes(all)} in all, of which ${bytes(sum("compulsory"))} are compulsory; ` +
      "a frame marks what of a tensor is.";
    byId("traffic-table").append(heading("tensor", "kind", "#loaded", "#stored", "#compulsory", "#beyond", ""),
      element("tbody", {}, ...rows.map(row => {
        const whole = element("div", {className: "bar"}), colours = this.model.colours.parts;
        whole.style.cssText = "border:0;position:relative;width:18rem";
        for (const [amount, colour] of [[row.loaded, colours[1]], [row.stored, colours[2]]]) {
          const part = element("span");
          part.style.cssText = `width:${100 * amount / most}%;background:${colour}`;
          whole.append(part);
        }
        const frame = element("span");
        frame.style.cssText = `position:absolute;left:0;width:${100 * row.compulsory / most}%;border:2px solid #000`;
        whole.append(frame);
        const line = [row.loaded, row.stored, row.compulsory, row.loaded + row.stored - row.compulsory];
        return element("tr", {}, cell(row.tensor), cell(row.kind), ...line.map(amount => cell(bytes(amount), true)),
          element("td", {}, whole));
      })));
    const {excess, words} = this.model;
    if (excess.length) {
      byId("excess-table").append(heading("#beyond", "what", "why", "operator"),
        element("tbody", {}, ...excess.map(row => element("tr", {},
          cell(bytes(row.bytes), true), cell(row.data), cell(words.beyond[row.kind]), cell(row.operator)))));
    }
  }

  cores() {
    const {model, view} = this, idles = model.words.reasons.map(name => `idle: ${name}`);
    legend(byId("idles"), [[BUSY, "busy"], ...idles.map((name, each) => [IDLE_COLOURS[each], name])
      .filter((_, each) => model.core_times.some(time => time.idle[each]))]);
    byId("core-table").append(heading("core", "#tasks", "#busy", model.behind ? "of the period" : "of the makespan"),
      element("tbody", {}, ...model.core_times.map((time, core) => element("tr", {}, cell(model.cores[core]),
        cell(exact(time.tasks), true), cell(percent(time.busy / view.makespan), true),
        element("td", {}, bar([[time.busy / view.makespan, BUSY, "busy"],
          ...time.idle.map((cycles, each) => [cycles / view.makespan, IDLE_COLOURS[each], idles[each]])]))))));
  }

  log() {
    const {log} = this.model;
    if (!log.length) { byId("log").hidden = byId("log-link").hidden = true; return; }
    byId("log-table").append(heading("#seconds", "source", "#incumbent", "#bound"),
      element("tbody", {}, ...log.map(([seconds, source, incumbent, bound]) => element("tr", {},
        cell(seconds.toFixed(2), true), cell(source), cell(incumbent === null ? "" : exact(incumbent), true), cell(bound === null ? "" : exact(bound), true)))));
  }
  drawLog() {
    const {log} = this.model;
    if (!log.length) return;
    const {to, width, height} = sharp(byId("log-canvas")), floor = height - 20;
    const last = Math.max(...log.map(row => row[0]), 0.001), known = log.filter(row => row[2] !== null);
    const bounds = log.filter(row => row[3] !== null);
    const values = [...known.map(row => row[2]), ...bounds.map(row => row[3])];
    const low = Math.min(...values) * 0.98, high = Math.max(...values) * 1.02 || 1;
    const x = seconds => GUTTER + seconds / last * (width - GUTTER - 10);
    const y = value => floor - (Math.max(value, low) - low) / (high - low || 1) * (floor - 8);
    to.textAlign = "right";
    for (const tick of ticks(low, high, floor, 34)) {
      to.fillStyle = "#ececec";
      to.fillRect(GUTTER, y(tick), width - GUTTER, 1);
      to.fillStyle = "#5c5c5c";
      to.fillText(exact(tick), GUTTER - 8, y(tick));
    }
    to.textAlign = "center";
    for (let tick = 0; tick <= 8; tick++) to.fillText(`${(last * tick / 8).toFixed(1)} s`, Math.min(x(last * tick / 8), width - 18), floor + 10);
    const stairs = (rows, column, colour) => {
      to.strokeStyle = colour;
      to.lineWidth = 2;
      to.beginPath();
      rows.forEach((row, place) => {
        if (place === 0) to.moveTo(x(row[0]), y(row[column]));
        else { to.lineTo(x(row[0]), y(rows[place - 1][column])); to.lineTo(x(row[0]), y(row[column])); }
      });
      if (rows.length) to.lineTo(x(last), y(rows[rows.length - 1][column]));
      to.stroke();
    };
    stairs(known, 2, "#004488");
    stairs(bounds, 3, "#BB5566");
    to.textAlign = "right";
    to.fillStyle = "#004488";
    if (known.length) to.fillText("incumbent", width - 12, y(known[known.length - 1][2]) - 9);
    to.fillStyle = "#BB5566";
    if (bounds.length) to.fillText("bound", width - 12, y(bounds[bounds.length - 1][3]) - 9);
  }
}
