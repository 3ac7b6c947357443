// The memory map: residencies as rectangles of time by address, one memory at a time.

const CURVE = "#000000", TOP = "#AA3377", LIMIT = "#D55E00";

class MemoryMap {
  constructor(model, view, choose) {
    Object.assign(this, {model, view, whole: false, canvas: byId("memory-canvas")});
    this.space = model.spaces.findIndex(space => space.peak > 0);
    handlePointer(this.canvas, view, {
      hover: (x, y) => this.describe(this.at(x, y)),
      choose: (x, y) => choose(this.at(x, y)),
    });
    this.select = byId("memories");
    model.spaces.forEach((space, place) => this.select.append(
      element("option", {value: place}, `${model.memories[space.memory].name} (${this.share(space)})`)));
    this.select.addEventListener("change", () => this.change(Number(this.select.value)));
    this.thumbnails();
    if (this.space !== -1) this.change(this.space);
  }
  share(space) {
    const {size} = this.model.memories[space.memory];
    return `${bytes(space.peak)} of ${bytes(size)}`;
  }
  change(place) {
    this.space = (place + this.model.spaces.length) % this.model.spaces.length;
    const space = this.model.spaces[this.space], {size} = this.model.memories[space.memory];
    this.select.value = this.space;
    const lost = space.peak - space.live_peak;
    byId("space-text").textContent = `peak ${bytes(space.peak)} of ${bytes(size)} (${percent(space.peak / size)}), ` +
      `first at cycle ${exact(space.peak_at)}; most live bytes ${bytes(space.live_peak)}: ` +
      `${bytes(lost)} above them (fragmentation, reserved bytes)`;
    byId("thumbnails").querySelectorAll("button").forEach((button, each) =>
      button.classList.toggle("chosen", each === this.space));
    this.view.changed();
  }
  changeTo(memory) {
    const place = this.model.spaces.findIndex(space => space.memory === memory);
    if (place !== -1 && place !== this.space) this.change(place);
  }

  y(address) { return this.floor - address / this.top * this.floor; }

  draw() {
    const {to, width, height} = sharp(this.canvas), {model, view} = this;
    Object.assign(this, {width, floor: height - 20});
    if (this.space === -1) return;
    const space = model.spaces[this.space], memory = model.memories[space.memory];
    this.top = (this.whole ? memory.size : Math.min(memory.size, Math.max(space.peak, 1))) * 1.06;
    drawTimeAxis(to, view, width, 0, this.floor);
    to.textAlign = "right";
    for (const tick of byteTicks(this.top, this.floor)) {
      to.fillStyle = "#ececec";
      to.fillRect(GUTTER, this.y(tick), width - GUTTER, 1);
      to.fillStyle = "#5c5c5c";
      to.fillText(bytes(tick), GUTTER - 8, Math.min(Math.max(this.y(tick), 7), this.floor - 5));
    }
    to.save();
    to.beginPath();
    to.rect(GUTTER, 0, width - GUTTER, this.floor);
    to.clip();
    this.drawLimits(to, memory);
    this.drawResidencies(to, space.memory);
    this.drawPeak(to, space.peak);
    this.drawCurve(to, space.cycles, space.live);
    to.restore();
    if (memory.size > this.top) {
      to.fillStyle = LIMIT;
      to.textAlign = "right";
      to.fillText(`capacity ${bytes(memory.size)} lies above`, width - 6, 8);
    }
  }

  drawLimits(to, memory) {
    if (!this.grey) this.grey = hatched(to, "#efefef", 1, "#b0b0b0");
    to.fillStyle = this.grey;
    for (const [start, end] of memory.reserved)
      to.fillRect(GUTTER, this.y(end), this.width - GUTTER, this.y(start) - this.y(end));
    to.fillStyle = LIMIT;
    to.fillRect(GUTTER, this.y(memory.size) - 1, this.width - GUTTER, 2);
    to.fillStyle = "#9a9a9a";
    for (let bank = 1; bank < (memory.banks ?? 1); bank++)
      for (let x = GUTTER; memory.banks <= 64 && x < this.width; x += 8)
        to.fillRect(x, this.y(memory.size * bank / memory.banks), 3, 0.8);
  }

  drawResidencies(to, memory) {
    const {model, view} = this, all = model.residencies, colours = Object.values(model.colours.kinds);
    const touched = this.touched();
    for (const each of model.residenciesOf[memory]) {
      if (all.start[each] >= view.to) break;
      if (all.end[each] <= view.from) continue;
      const left = Math.max(view.x(all.start[each], this.width), GUTTER), right = view.x(all.end[each], this.width);
      const high = this.y(all.offset[each]) - this.y(all.offset[each] + all.bytes[each]);
      const top = this.y(all.offset[each] + all.bytes[each]), wide = Math.max(right - left, 0.7);
      if (wide * high < 0.15) continue;
      to.globalAlpha = this.isDim(each) ? 0.2 : 1;
      to.fillStyle = colours[model.kind(each)];
      to.fillRect(left, top, wide, Math.max(high, 0.7));
      if (wide > 3 && high > 3) {
        to.strokeStyle = "rgba(0,0,0,.55)";
        to.lineWidth = 0.6;
        to.strokeRect(left, top, wide, high);
        if (all.below[each] !== NONE) this.drawCorner(to, left, top, Math.min(wide, high, 10));
        if (wide > 42 && high > 12) {
          to.fillStyle = "#000";
          to.textAlign = "left";
          to.fillText(cut(to, model.residencyName(each), wide - 14), left + 10, top + high / 2);
        }
      }
      to.globalAlpha = 1;
    }
    to.strokeStyle = "#AA3377";
    to.lineWidth = 2.5;
    for (const each of touched) {
      if (all.memory[each] !== memory || all.end[each] <= view.from || all.start[each] >= view.to) continue;
      const left = Math.max(view.x(all.start[each], this.width), GUTTER), top = this.y(all.offset[each] + all.bytes[each]);
      to.strokeRect(left, top, Math.max(2, view.x(all.end[each], this.width) - left), Math.max(2, this.y(all.offset[each]) - top));
    }
  }
  // A corner marks a result that has taken the place of an operand.
  drawCorner(to, left, top, size) {
    to.fillStyle = "#000";
    to.beginPath();
    to.moveTo(left, top);
    to.lineTo(left + size, top);
    to.lineTo(left, top + size);
    to.fill();
  }
  touched() {
    const {model, view} = this;
    if (view.residency !== null) return [view.residency];
    if (view.chosen === null) return [];
    return [...model.reads(view.chosen), ...model.writes(view.chosen)];
  }
  isDim(residency) {
    const {model, view} = this;
    if (!view.found) return false;
    const slice = model.residencies.slice[residency];
    return slice === NONE || !view.found.has(model.slices.buffer[slice]);
  }

  drawPeak(to, peak) {
    to.strokeStyle = TOP;
    to.lineWidth = 1.4;
    to.setLineDash([5, 3]);
    to.beginPath();
    to.moveTo(GUTTER, this.y(peak));
    to.lineTo(this.width, this.y(peak));
    to.stroke();
    to.setLineDash([]);
  }
  drawCurve(to, cycles, values) {
    to.strokeStyle = CURVE;
    to.lineWidth = 1.4;
    to.beginPath();
    let y = this.floor;
    to.moveTo(GUTTER, y);
    for (let place = 0; place < cycles.length; place++) {
      if (cycles[place] > this.view.to) break;
      const x = Math.max(this.view.x(cycles[place], this.width), GUTTER - 1);
      to.lineTo(x, y);
      y = this.y(values[place]);
      to.lineTo(x, y);
    }
    to.lineTo(this.width, y);
    to.stroke();
  }

  at(x, y) {
    if (this.space === -1 || x < GUTTER || y > this.floor) return null;
    const {model, view} = this, all = model.residencies;
    const cycle = view.cycle(x, this.width), address = (this.floor - y) / this.floor * this.top;
    const near = (view.to - view.from) / this.width;
    let best = null;
    for (const each of model.residenciesOf[model.spaces[this.space].memory]) {
      if (all.start[each] > cycle + near) break;
      if (all.end[each] > cycle - near && all.offset[each] <= address && address < all.offset[each] + all.bytes[each])
        best = each;
    }
    return best;
  }
  describe(residency) {
    if (residency === null) return null;
    const all = this.model.residencies, kind = this.model.kindNames[this.model.kind(residency)];
    const lines = [`${this.model.residencyName(residency)}, ${kind}`,
      `${bytes(all.bytes[residency])} at [${exact(all.offset[residency])}, ${exact(all.offset[residency] + all.bytes[residency])})`,
      `cycles [${exact(all.start[residency])}, ${exact(all.end[residency])})`];
    if (all.below[residency] !== NONE) lines.push(`in place of ${this.model.residencyName(all.below[residency])}`);
    return lines;
  }

  thumbnails() {
    const {model} = this, box = byId("thumbnails");
    model.spaces.forEach((space, place) => {
      const picture = element("canvas");
      box.append(element("button", {type: "button", onclick: () => this.change(place), title: this.share(space)},
        picture, `${model.memories[space.memory].name}: ${percent(space.peak / model.memories[space.memory].size)}`));
      space.picture = picture;
    });
  }
  drawThumbnails() {
    const most = Math.max(1, ...this.model.spaces.map(space => space.peak));
    for (const space of this.model.spaces) {
      const {to, width, height} = sharp(space.picture, 38), at = cycle => cycle / this.view.makespan * width;
      to.fillStyle = "#8fb8de";
      space.cycles.forEach((cycle, place) => {
        const next = space.cycles[place + 1] ?? this.view.makespan, high = space.live[place] / most * (height - 3);
        to.fillRect(at(cycle), height - high, Math.max(0.5, at(next) - at(cycle)), high);
      });
      to.fillStyle = TOP;
      to.fillRect(0, height - space.peak / most * (height - 3), width, 1);
    }
  }
}
