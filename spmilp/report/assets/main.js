// Puts the views together: choosing, searching, keys, printing.

const KEYS = [
  ["← →", "move"], ["+ −", "zoom"], ["0", "whole plan"], ["n p", "next and previous on the critical chain"],
  ["b", "what the chosen one waited for"], ["f", "first that waits for it"], ["e", "end of the critical chain"],
  ["[ ]", "previous and next memory"], ["c", "critical chain on or off"], ["/", "search"],
  ["Enter", "next that was found"], ["Esc", "choose nothing"], ["?", "this list"],
];

function begin(plan) {
  const model = new Model(plan), view = new View(plan.makespan);
  const go = (activity, residency) => {
    view.chosen = activity;
    view.residency = residency;
    if (residency !== null) {
      const all = model.residencies;
      memory.changeTo(all.memory[residency]);
      view.reveal(all.start[residency], all.end[residency]);
    } else if (activity !== null) {
      memory.changeTo(model.memoryOf(activity));
      view.reveal(model.start(activity), model.end(activity));
      timeline.scrollTo(activity);
    }
    details.show();
    view.changed();
  };
  const timeline = new Timeline(model, view, activity => go(activity, null));
  const overview = new Overview(model, view);
  const memory = new MemoryMap(model, view, residency => go(null, residency));
  const details = new Details(model, view, go);
  const tables = new Tables(model, view, go);
  let printing = false;
  const drawAll = () => {
    overview.draw();
    timeline.draw(printing || matchMedia("print").matches);
    memory.draw();
  };
  drawAll();
  details.show();
  performance.mark("painted");
  legends(model, view);
  tables.fill();
  memory.drawThumbnails();
  tables.drawLog();
  view.onChange(drawAll);
  controls(model, view, {timeline, memory, go});
  window.addEventListener("resize", () => { timeline.arrange(); drawAll(); memory.drawThumbnails(); tables.drawLog(); });
  for (const [event, begins] of [["beforeprint", true], ["afterprint", false]])
    window.addEventListener(event, () => { printing = begins; drawAll(); });
  window.report = {model, view, go, timeline, memory};
}

function legends(model, view) {
  const box = byId("operators"), buttons = model.operators.map((name, operator) => {
    const sample = element("canvas", {width: 18, height: 12}), to = sample.getContext("2d");
    to.fillStyle = filling(to, model, operator);
    to.fillRect(0, 0, 18, 12);
    return element("button", {type: "button", title: "Show only this operator", onclick: () => {
      view.operator = view.operator === operator ? null : operator;
      buttons.forEach((button, each) => button.classList.toggle("off", view.operator !== null && each !== view.operator));
      view.changed();
    }}, sample, name);
  });
  const named = colour => { const sample = element("i"); sample.style.background = colour; return sample; };
  const moves = [1, 2, 3].map(part => element("span", {}, named(model.colours.parts[part]), model.words.parts[part]));
  box.append(element("b", {}, "operators"), ...buttons, element("b", {}, "transfers"), ...moves);
  const kinds = byId("kinds");
  kinds.append(...Object.entries(model.colours.kinds).map(([kind, colour]) => element("span", {}, named(colour), kind)),
    element("span", {}, "◤ in place of an operand"),
    element("span", {}, "— live bytes"), element("span", {}, "┄ peak: highest address in use"), element("span", {}, "▬ capacity"));
}

function controls(model, view, {timeline, memory, go}) {
  byId("zoom-in").onclick = () => view.zoom(0.5);
  byId("zoom-out").onclick = () => view.zoom(2);
  byId("fit").onclick = () => view.show(0, view.makespan);
  byId("show-chain").onchange = event => { view.chain = event.target.checked; view.changed(); };
  byId("show-links").onchange = event => { timeline.withLinks = event.target.checked; timeline.arrange(); view.changed(); };
  byId("whole-memory").onchange = event => { memory.whole = event.target.checked; view.changed(); };
  byId("help").onclick = () => { byId("keys").hidden = !byId("keys").hidden; };
  byId("keys").append(...KEYS.flatMap(([key, what]) => [element("kbd", {}, key), ` ${what}   `]));
  const search = byId("search");
  let order = [], place = -1;
  search.addEventListener("input", () => {
    [order, place] = [find(model, view, search.value), -1];
    byId("found").textContent = search.value ? `${exact(order.length)} found` : "";
    view.changed();
  });
  const turn = by => {
    const at = model.placeInChain.get(view.chosen);
    const next = at === undefined ? (by > 0 ? 0 : model.chain.length - 1) : at + by;
    if (next >= 0 && next < model.chain.length) go(model.chain[next], null);
  };
  const actions = {
    ArrowLeft: () => view.move(-0.15), ArrowRight: () => view.move(0.15), "+": () => view.zoom(0.6), "=": () => view.zoom(0.6),
    "-": () => view.zoom(1 / 0.6), 0: () => view.show(0, view.makespan), n: () => turn(1), p: () => turn(-1),
    b: () => { const [cause] = view.chosen === null ? [] : model.causesOf(view.chosen); if (cause) go(cause.activity, null); },
    f: () => { const [first] = view.chosen === null ? [] : model.heldUpBy(view.chosen); if (first !== undefined) go(first, null); },
    e: () => { if (model.chain.length) go(model.chain[model.chain.length - 1], null); },
    "[": () => memory.change(memory.space - 1), "]": () => memory.change(memory.space + 1),
    c: () => byId("show-chain").click(), "/": () => search.focus(), "?": () => byId("help").click(),
    Escape: () => go(null, null),
  };
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target === search) {
      if (event.key === "Enter" && order.length) go(order[place = (place + 1) % order.length], null);
      if (event.key === "Escape") { search.value = ""; search.dispatchEvent(new Event("input")); search.blur(); }
      return;
    }
    if (event.target.tagName === "SELECT" || !(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  });
}

// Mark what a text occurs in, by name; return tasks and transfers in order of their start.
function find(model, view, text) {
  const wanted = text.trim().toLowerCase();
  view.matches = view.found = null;
  if (!wanted) return [];
  const has = name => name.toLowerCase().includes(wanted);
  view.found = new Set(model.buffers.name.flatMap((name, each) => has(name) || has(model.buffers.tensor[each]) ? [each] : []));
  const operators = new Set(model.operators.flatMap((name, each) => has(name) ? [each] : [])), found = [];
  for (let activity = 0; activity < model.activities; activity++) {
    const hit = model.isTask(activity) ? has(model.name(activity)) || operators.has(model.tasks.operator[activity])
      : view.found.has(model.slices.buffer[model.transfers.slice[activity - model.count]]);
    if (hit) found.push(activity);
  }
  view.matches = new Set(found);
  return found.sort((a, b) => model.start(a) - model.start(b));
}

unpacked(byId("plan").textContent).then(begin).catch(error => {
  byId("failure").textContent = `The page could not be drawn: ${error.message}`;
  byId("failure").hidden = false;
  throw error;
});
