// Which cycles are shown, what is chosen, and text for numbers.

const GUTTER = 132;

class View {
  constructor(makespan) {
    Object.assign(this, {makespan: Math.max(makespan, 1), from: 0, to: Math.max(makespan, 1),
      chosen: null, residency: null, operator: null, chain: true, matches: null});
    this.listeners = [];
    this.waiting = false;
  }
  onChange(listener) { this.listeners.push(listener); }
  changed() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.listeners.forEach(listener => listener()); });
  }
  show(from, to) {
    const length = Math.min(Math.max(to - from, Math.min(20, this.makespan)), this.makespan);
    this.from = Math.min(Math.max(from, 0), this.makespan - length);
    this.to = this.from + length;
    this.changed();
  }
  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  move(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }
  // Show an interval with something around it, unless it is well in sight.
  reveal(start, end) {
    const length = this.to - this.from;
    if (start >= this.from && end <= this.to && (end - start) * 200 > length) return;
    const around = Math.max((end - start) * 12, Math.min(length, this.makespan / 8));
    this.show((start + end - around) / 2, (start + end + around) / 2);
  }
  x(cycle, width) { return GUTTER + (cycle - this.from) / (this.to - this.from) * (width - GUTTER); }
  cycle(x, width) { return this.from + (x - GUTTER) / (width - GUTTER) * (this.to - this.from); }
}

const exact = number => Math.round(number).toLocaleString("en-US");
const percent = share => `${(100 * share).toFixed(1)} %`;
function bytes(number) {
  if (number < 10240) return `${exact(number)} B`;
  let value = number, unit = 0;
  while (value >= 1024 && unit < 3) { value /= 1024; unit += 1; }
  return `${value.toFixed(1)} ${["B", "KiB", "MiB", "GiB"][unit]}`;
}

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties))
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const byId = name => document.getElementById(name);
