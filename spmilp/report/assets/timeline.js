// Cores, DMA channels and links over time, and the strip above them.

// Pixels of a printed timeline at most.
const TALLEST = 6000;
const HEADINGS = {core: "cores", channel: "DMA channels", link: "links"}, AXIS = 20;

class Timeline {
  constructor(model, view, choose) {
    Object.assign(this, {model, view, withLinks: false});
    this.box = byId("rows");
    this.canvas = byId("timeline-canvas");
    this.arrange();
    this.box.addEventListener("scroll", () => this.draw());
    handlePointer(this.canvas, view, {
      hover: (x, y) => this.describe(this.at(x, y)),
      choose: (x, y) => { const found = this.at(x, y); choose(found ? found.activity : null); },
    });
  }

  // Lay the rows out below each other, with a heading before each kind.
  arrange() {
    const shown = this.model.rows.filter(row => this.withLinks || row.kind !== "link");
    this.tall = shown.length <= 24 ? 20 : shown.length <= 90 ? 14 : 12;
    this.lines = [];
    let kind = null, top = 0;
    for (const row of shown) {
      if (row.kind !== kind) {
        kind = row.kind;
        this.lines.push({heading: HEADINGS[kind], top, height: 18});
        top += 18;
      }
      row.top = top;
      this.lines.push({row, top, height: this.tall});
      top += this.tall;
    }
    this.height = top;
    const room = Math.min(top + AXIS, Math.round(window.innerHeight * 0.62));
    this.inside = room;
    this.box.style.height = `${room + 2}px`;
    byId("rows-height").style.height = `${Math.max(0, top + AXIS - room)}px`;
  }

  draw(printed = false) {
    const {to, width, height} = sharp(this.canvas, printed ? Math.min(this.height, TALLEST) + AXIS : this.inside);
    const {view} = this, bottom = height - AXIS, scrolled = printed ? 0 : this.box.scrollTop;
    Object.assign(this, {width, bottom, scrolled});
    drawTimeAxis(to, view, width, 0, bottom);
    to.save();
    to.beginPath();
    to.rect(0, 0, width, bottom);
    to.clip();
    to.translate(0, -scrolled);
    for (const line of this.lines) {
      if (line.top + line.height < scrolled || line.top > scrolled + bottom) continue;
      if (line.heading) this.drawHeading(to, line);
      else this.drawRow(to, line.row, line.top);
    }
    if (view.chain) this.drawChain(to, scrolled);
    if (view.chosen !== null) this.drawChosen(to);
    to.restore();
  }

  drawHeading(to, line) {
    to.fillStyle = "#1a1a1a";
    to.textAlign = "left";
    to.font = `600 11px ${FONT}`;
    to.fillText(line.heading, 6, line.top + line.height / 2 + 1);
    to.font = `11px ${FONT}`;
    to.fillStyle = "#d8d8d8";
    to.fillRect(0, line.top + line.height - 1, this.width, 1);
  }

  drawRow(to, row, top) {
    to.fillStyle = "#333";
    to.textAlign = "right";
    to.font = `${Math.min(11, this.tall - 1)}px ${FONT}`;
    to.fillText(cut(to, row.name, GUTTER - 16), GUTTER - 8, top + this.tall / 2);
    to.font = `11px ${FONT}`;
    if (row.kind === "link") this.drawLevels(to, row, top);
    else this.drawBars(to, row, top);
  }

  // The first item of a row that may end after a cycle; of latencies a later one may end earlier.
  first(row, cycle) {
    let low = 0, high = row.items.length, latest = 0;
    row.ended ??= row.items.map(each => latest = Math.max(latest, this.model.end(each)));
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row.ended[middle] <= cycle) low = middle + 1; else high = middle;
    }
    return low;
  }

  drawBars(to, row, top) {
    const {model, view, width} = this, high = this.tall - 2;
    let painted = -1;
    for (let place = this.first(row, view.from); place < row.items.length; place++) {
      const activity = row.items[place], start = model.start(activity);
      if (start >= view.to) break;
      const [left, from, until, right] = [start, ...model.sends(activity), model.end(activity)]
        .map(cycle => Math.max(view.x(cycle, width), GUTTER));
      if (right < Math.max(painted + 0.4, GUTTER + 0.01)) continue;
      const wide = Math.max(until - left, 0.8), dim = this.isDim(activity) ? 0.18 : 1;
      painted = left + wide;
      to.fillStyle = model.isTask(activity) ? filling(to, model, model.tasks.operator[activity])
        : model.colours.parts[model.part(activity)];
      // Set-up and latency are paler than bytes.
      to.globalAlpha = 0.35 * dim;
      to.fillRect(left, top + 1, from - left, high);
      to.fillRect(until, top + 1, right - until, high);
      to.globalAlpha = dim;
      to.fillRect(from, top + 1, until > GUTTER ? Math.max(until - from, 0.8) : 0, high);
      if (wide > 4) {
        to.fillStyle = "rgba(0,0,0,.45)";
        to.fillRect(left, top + 1, 0.7, high);
      }
      if (until - from > 34 && high >= 11) {
        to.fillStyle = model.isTask(activity) || model.part(activity) === 3 ? "#000" : "#fff";
        to.textAlign = "left";
        const text = model.isTask(activity) ? model.name(activity) : model.sliceName(model.transfers.slice[activity - model.count]);
        to.fillText(cut(to, text, until - from - 8), from + 4, top + this.tall / 2 + 0.5);
      }
    }
    to.globalAlpha = 1;
  }

  isDim(activity) {
    const {model, view} = this;
    if (view.matches) return !view.matches.has(activity);
    return view.operator !== null && (!model.isTask(activity) || model.tasks.operator[activity] !== view.operator);
  }

  drawLevels(to, row, top) {
    const levels = this.model.levels(row), {view, width} = this, high = this.tall - 2;
    let low = 0, end = levels.length;
    while (low < end) {
      const middle = (low + end) >> 1;
      if (levels[middle][0] <= view.from) low = middle + 1; else end = middle;
    }
    to.fillStyle = "#7a8793";
    let painted = -1, most = 0;
    for (let place = Math.max(0, low - 1); place < levels.length && levels[place][0] < view.to; place++) {
      const [cycle, level] = levels[place];
      if (level === 0) continue;
      const next = place + 1 < levels.length ? levels[place + 1][0] : view.makespan;
      const left = Math.max(view.x(cycle, width), GUTTER), right = view.x(next, width);
      most = right < painted + 0.4 ? Math.max(most, level) : level;
      if (right < painted + 0.4 && most > level) continue;
      to.fillRect(left, top + 1 + high * (1 - most), Math.max(right - left, 0.7), high * most);
      painted = left + Math.max(right - left, 0.7);
    }
    to.fillStyle = "#e4e4e4";
    to.fillRect(GUTTER, top, width - GUTTER, 0.6);
  }

  boxOf(activity) {
    const row = this.model.rows[this.model.rowOf[activity]];
    const left = Math.max(this.view.x(this.model.start(activity), this.width), GUTTER);
    const right = this.view.x(this.model.end(activity), this.width);
    return {left, right, wide: Math.max(right - left, 1.6), top: row.top + 1, high: this.tall - 2};
  }

  // The chain: each of its bars with a border, and lines from each to the next.
  drawChain(to) {
    const {model, view} = this;
    to.strokeStyle = "#000";
    let before = null;
    for (const activity of model.chain) {
      const here = this.boxOf(activity);
      const seen = model.end(activity) >= view.from && model.start(activity) <= view.to;
      if (seen) {
        to.fillStyle = "#000";
        if (here.wide < 6) {
          to.fillRect(here.left, here.top - 1, here.wide, 2);
          to.fillRect(here.left, here.top + here.high - 2, here.wide, 3);
        } else {
          to.lineWidth = 1.8;
          to.strokeRect(here.left, here.top, here.wide, here.high);
        }
      }
      if (before && here.left >= GUTTER && before.right <= this.width && here.top !== before.top) {
        to.lineWidth = 0.9;
        to.beginPath();
        to.moveTo(Math.max(before.right, GUTTER), before.top + before.high / 2);
        to.lineTo(here.left, here.top + here.high / 2);
        to.stroke();
      }
      before = here;
    }
  }

  drawChosen(to) {
    const {model, view} = this, here = this.boxOf(view.chosen);
    to.strokeStyle = "#AA3377";
    for (const cause of model.causesOf(view.chosen)) {
      const from = this.boxOf(cause.activity);
      to.lineWidth = 1.4;
      to.setLineDash([4, 2]);
      to.strokeRect(from.left, from.top, from.wide, from.high);
      to.setLineDash([]);
      to.beginPath();
      to.moveTo(Math.max(GUTTER, from.right), from.top + from.high / 2);
      to.lineTo(here.left, here.top + here.high / 2);
      to.stroke();
    }
    to.lineWidth = 3;
    if (here.right >= GUTTER) to.strokeRect(here.left - 1, here.top - 1, here.wide + 2, here.high + 2);
  }

  at(x, y) {
    const {model, view} = this, inside = y + this.scrolled;
    if (x < GUTTER || y > this.bottom) return null;
    const line = this.lines.find(each => each.row && inside >= each.top && inside < each.top + each.height);
    if (!line) return null;
    const cycle = view.cycle(x, this.width), near = (view.to - view.from) / (this.width - GUTTER) * 3;
    let best = null, distance = Infinity;
    const from = line.row.kind === "link" ? 0 : this.first(line.row, cycle - near);
    for (let place = from; place < line.row.items.length; place++) {
      const activity = line.row.items[place], start = model.start(activity), end = model.end(activity);
      if (start > cycle + near) break;
      const off = cycle < start ? start - cycle : cycle >= end ? cycle - end : 0;
      if (off <= near && off <= distance) { best = activity; distance = off; }
    }
    return best === null ? null : {activity: best, row: line.row};
  }

  describe(found) {
    if (!found) return null;
    const {model} = this, {activity} = found;
    const lines = [model.name(activity)];
    if (model.isTask(activity)) lines.push(`${model.operators[model.tasks.operator[activity]]} on ${model.where(activity)}`);
    else lines.push(`${model.words.parts[model.part(activity)]}: ${bytes(model.slices.bytes[model.transfers.slice[activity - model.count]])} by ${model.where(activity)}`);
    lines.push(model.cycles(activity));
    if (model.placeInChain.has(activity)) lines.push("on the critical chain");
    return lines;
  }

  scrollTo(activity) {
    const {top} = this.model.rows[this.model.rowOf[activity]];
    if (top < this.box.scrollTop || top > this.box.scrollTop + this.inside - AXIS - this.tall)
      this.box.scrollTop = Math.max(0, top - this.inside / 2);
  }
}

// The whole plan in a strip: busy cores, the parts of the critical chain, and the cycles shown.
class Overview {
  constructor(model, view) {
    Object.assign(this, {model, view, canvas: byId("overview")});
    this.busy = this.count(600);
    this.canvas.addEventListener("pointerdown", event => {
      this.canvas.setPointerCapture(event.pointerId);
      this.anchor = this.cycle(event);
    });
    this.canvas.addEventListener("pointermove", event => {
      if (this.anchor === undefined) return;
      const here = this.cycle(event), [from, to] = [this.anchor, here].sort((a, b) => a - b);
      if (to - from > view.makespan / 200) view.show(from, to);
    });
    this.canvas.addEventListener("pointerup", event => {
      const half = (view.to - view.from) / 2, here = this.cycle(event);
      if (Math.abs(here - this.anchor) <= view.makespan / 200) view.show(here - half, here + half);
      this.anchor = undefined;
    });
  }
  cycle(event) {
    return (event.offsetX - GUTTER) / (this.canvas.clientWidth - GUTTER) * this.view.makespan;
  }
  count(bins) {
    const {start, end} = this.model.tasks, found = new Float64Array(bins), wide = this.view.makespan / bins;
    for (let task = 0; task < start.length; task++)
      for (let bin = Math.floor(start[task] / wide); bin < bins && bin * wide < end[task]; bin++)
        found[bin] += Math.min(end[task], (bin + 1) * wide) - Math.max(start[task], bin * wide);
    return found.map(cycles => cycles / wide / this.model.cores.length);
  }
  draw() {
    const {to, width, height} = sharp(this.canvas), {model, view} = this, room = width - GUTTER;
    const at = cycle => GUTTER + cycle / view.makespan * room, floor = height - 20;
    to.textAlign = "right";
    to.fillStyle = "#333";
    to.fillText("busy cores", GUTTER - 8, floor / 2);
    to.fillText("critical chain", GUTTER - 8, height - 12);
    to.fillStyle = "#f0f0f0";
    to.fillRect(GUTTER, 0, room, floor);
    to.fillStyle = "#77AADD";
    this.busy.forEach((share, bin) => {
      const left = GUTTER + bin / this.busy.length * room;
      to.fillRect(left, floor * (1 - share), room / this.busy.length + 0.5, floor * share);
    });
    for (const activity of model.chain) {
      to.fillStyle = model.colours.parts[model.part(activity)];
      to.fillRect(at(model.start(activity)), floor + 3, Math.max(0.6, at(model.end(activity)) - at(model.start(activity))), 11);
    }
    to.strokeStyle = "#777";
    to.lineWidth = 0.7;
    to.strokeRect(GUTTER, floor + 3, room - 0.5, 11);
    to.strokeStyle = "#AA3377";
    to.lineWidth = 2;
    to.strokeRect(at(view.from), 1, Math.max(2, at(view.to) - at(view.from) - 1), height - 4);
  }
}
