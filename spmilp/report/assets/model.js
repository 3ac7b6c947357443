// The plan as it was packed, and what is looked up in it.

async function unpacked(text) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("this browser cannot unpack the plan; one of 2023 or later can");
  const packed = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const NONE = -1, VERBS = ["", "load", "store", "move"];

class Model {
  constructor(plan) {
    Object.assign(this, plan);
    this.count = this.tasks.start.length;
    this.activities = this.count + this.transfers.start.length;
    this.placeInChain = new Map(this.chain.map((activity, place) => [activity, place]));
    this.memoryOfSpace = this.spaces.map(space => space.memory);
    this.readersOf = this.readers();
    this.residenciesOf = this.memories.map(() => []);
    this.residencies.start.forEach((_, each) =>
      this.residenciesOf[this.residencies.memory[each]].push(each));
    for (const here of this.residenciesOf)
      here.sort((a, b) => this.residencies.start[a] - this.residencies.start[b]);
    this.rows = this.allRows();
  }

  isTask(activity) { return activity < this.count; }
  start(activity) {
    return this.isTask(activity) ? this.tasks.start[activity] : this.transfers.start[activity - this.count];
  }
  end(activity) {
    return this.isTask(activity) ? this.tasks.end[activity] : this.transfers.end[activity - this.count];
  }
  // The cycles of a transfer's bytes, between its set-up and its latency; all those of a task.
  sends(activity) {
    return this.isTask(activity) ? [this.start(activity), this.end(activity)] : this.transfers.sends[activity - this.count];
  }
  cycles(activity) {
    const start = this.start(activity), end = this.end(activity), [from, until] = this.sends(activity);
    const parts = `: ${exact(from - start)} set-up, ${exact(until - from)} bytes, ${exact(end - until)} latency`;
    return `[${exact(start)}, ${exact(end)}): ${exact(end - start)} cycles${this.isTask(activity) ? "" : parts}`;
  }
  part(activity) { return this.isTask(activity) ? 0 : this.transfers.part[activity - this.count]; }
  reads(activity) {
    return this.isTask(activity) ? this.tasks.reads[activity] : [this.transfers.source[activity - this.count]];
  }
  writes(activity) {
    if (!this.isTask(activity)) return this.transfers.ends[activity - this.count];
    const scratch = this.tasks.scratch[activity];
    return scratch === NONE ? this.tasks.writes[activity] : [...this.tasks.writes[activity], scratch];
  }
  name(activity) {
    // Of a stream, how many periods before its inference began.
    const behind = this.behind?.[activity];
    return this.plainName(activity) + (behind ? ` (inference −${behind})` : "");
  }
  plainName(activity) {
    if (this.isTask(activity)) return this.tasks.name[activity];
    const move = activity - this.count, ends = this.transfers.ends[move];
    const to = ends.length > 1 ? `${ends.length} memories` : this.memories[this.residencies.memory[ends[0]]].name;
    return `${VERBS[this.transfers.part[move]]} of ${this.sliceName(this.transfers.slice[move])} to ${to}`;
  }
  where(activity) {
    if (this.isTask(activity)) return this.cores[this.tasks.core[activity]];
    const move = activity - this.count;
    return this.channelName(this.transfers.engine[move], this.transfers.channel[move]);
  }
  channelName(engine, channel) {
    const {name, channels} = this.engines[engine];
    return channels > 1 ? `${name}:${channel}` : name;
  }
  sliceName(slice) {
    const buffer = this.slices.buffer[slice];
    const part = slice === buffer ? "" : `, slice ${slice}`;
    return this.buffers.name[buffer] + part;
  }
  residencyName(residency) {
    const slice = this.residencies.slice[residency];
    return slice === NONE ? "scratch" : this.sliceName(slice);
  }
  kind(residency) {
    const slice = this.residencies.slice[residency];
    return slice === NONE ? this.kindNames.length - 1 : this.buffers.kind[this.slices.buffer[slice]];
  }
  get kindNames() { return Object.keys(this.colours.kinds); }
  memoryOf(activity) {
    if (this.isTask(activity)) return this.core_memory[this.tasks.core[activity]];
    const ends = [...this.writes(activity), ...this.reads(activity)].map(each => this.residencies.memory[each]);
    return ends.find(memory => this.memoryOfSpace.includes(memory)) ?? ends[0];
  }

  causesOf(activity) {
    const {first, wait, until, activity: by, residency, link} = this.causes, found = [];
    for (let row = first[activity]; row < first[activity + 1]; row++)
      found.push({wait: wait[row], until: until[row], activity: by[row], residency: residency[row], link: link[row]});
    return found;
  }
  heldUpBy(activity) {
    if (!this.heldUp) {
      this.heldUp = new Map();
      for (let each = 0; each < this.activities; each++) {
        const row = this.causes.first[each];
        if (row === this.causes.first[each + 1]) continue;
        const by = this.causes.activity[row];
        if (!this.heldUp.has(by)) this.heldUp.set(by, []);
        this.heldUp.get(by).push(each);
      }
    }
    return this.heldUp.get(activity) ?? [];
  }

  readers() {
    const found = Array.from(this.residencies.start, () => []);
    for (let activity = 0; activity < this.activities; activity++)
      for (const residency of this.reads(activity)) found[residency].push(activity);
    return found;
  }

  allRows() {
    const rows = this.cores.map(name => ({kind: "core", name, items: []}));
    this.rowOf = new Int32Array(this.activities);
    this.tasks.core.forEach((core, task) => { rows[core].items.push(task); this.rowOf[task] = core; });
    const channels = new Map(), links = new Map();
    const {engine, channel, route} = this.transfers;
    for (let move = 0; move < engine.length; move++) {
      const key = engine[move] * 65536 + channel[move];
      if (!channels.has(key))
        channels.set(key, {kind: "channel", name: this.channelName(engine[move], channel[move]), items: []});
      channels.get(key).items.push(this.count + move);
      for (const link of route[move]) {
        if (!links.has(link)) links.set(link, {kind: "link", name: this.links[link], link, items: []});
        links.get(link).items.push(this.count + move);
      }
    }
    const inOrder = found => [...found].sort((a, b) => a[0] - b[0]).map(([, row]) => row);
    for (const row of inOrder(channels)) {
      for (const activity of row.items) this.rowOf[activity] = rows.length;
      rows.push(row);
    }
    rows.push(...inOrder(links));
    for (const row of rows) row.items.sort((a, b) => this.start(a) - this.start(b));
    return rows;
  }

  // What transfers hold of a link over time: [cycle, share from it on] in order.
  levels(row) {
    if (row.levels) return row.levels;
    const changes = new Map(), full = this.link_rates[row.link];
    for (const activity of row.items) {
      const held = this.transfers.held[activity - this.count], [from, until] = this.sends(activity);
      changes.set(from, (changes.get(from) ?? 0) + held);
      changes.set(until, (changes.get(until) ?? 0) - held);
    }
    let level = 0;
    row.levels = [...changes].sort((a, b) => a[0] - b[0])
      .map(([cycle, change]) => [cycle, (level += change) / full]);
    return row.levels;
  }
}
