// What is known of the chosen task, transfer or residency.

class Details {
  constructor(model, view, go) {
    Object.assign(this, {model, view, go, box: byId("details")});
  }

  show() {
    const {view} = this;
    this.box.classList.toggle("empty", view.residency === null && view.chosen === null);
    if (view.residency !== null) this.box.replaceChildren(...this.ofResidency(view.residency));
    else if (view.chosen !== null) this.box.replaceChildren(...this.ofActivity(view.chosen));
    else this.box.replaceChildren(element("h3", {}, "Nothing chosen"),
      element("p", {}, "Click a task, a transfer or a rectangle of the memory map: here stands what it reads and " +
        "writes, where that lies, what has brought it, and why it starts when it does."),
      element("p", {}, this.link(this.model.chain[this.model.chain.length - 1] ?? null, null, "Begin at the end of the critical chain")));
  }

  link(activity, residency, text) {
    if (activity === null && residency === null) return "";
    const act = event => { event.preventDefault(); this.go(activity, residency); };
    return element("a", {href: "#details", className: "go", onclick: act},
      text ?? (residency !== null ? this.model.residencyName(residency) : this.model.name(activity)));
  }

  facts(pairs) {
    return element("dl", {}, ...pairs.flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", {}, ...[value].flat())]));
  }

  ofActivity(activity) {
    const {model} = this, start = model.start(activity);
    const facts = model.isTask(activity) ? this.factsOfTask(activity) : this.factsOfTransfer(activity - model.count);
    facts.push(["cycles", model.cycles(activity)]);
    return [...this.steps(activity), element("h3", {}, model.name(activity)), this.facts(facts),
      ...(model.behind ? [] : [element("h4", {}, `Why it starts at ${exact(start)}`), this.why(activity)]),
      ...this.placed(model.isTask(activity) ? "Reads" : "From", model.reads(activity)),
      ...this.placed(model.isTask(activity) ? "Writes" : "To", model.writes(activity)),
      ...this.waiting(activity)];
  }
  factsOfTask(task) {
    const {model} = this, core = model.tasks.core[task];
    return [["operator", model.operators[model.tasks.operator[task]]], ["core", model.cores[core]],
      ["works in", model.memories[model.core_memory[core]].name]];
  }
  factsOfTransfer(move) {
    const {model} = this, all = model.transfers, route = all.route[move].map(link => model.links[link]);
    return [["what", model.words.parts[all.part[move]]], ["bytes", bytes(model.slices.bytes[all.slice[move]])],
      ["DMA channel", model.channelName(all.engine[move], all.channel[move])],
      ["route", route.length ? route.join(", ") : "no link"]];
  }

  // Back and on along the critical chain.
  steps(activity) {
    const {model} = this, place = model.placeInChain.get(activity);
    if (place === undefined) return [];
    const before = model.chain[place - 1] ?? null, after = model.chain[place + 1] ?? null;
    return [element("div", {className: "steps"}, this.link(before, null, "← before it"),
      element("span", {}, `critical chain, ${place + 1} of ${model.chain.length}`), this.link(after, null, "after it →"))];
  }

  why(activity) {
    const {model} = this, causes = model.causesOf(activity), start = model.start(activity);
    const waited = causes.length ? causes[0].until : 0, list = element("ol");
    if (start > waited)
      list.append(element("li", {className: "binding"}, causes.length
        ? `nothing kept it waiting from ${exact(waited)} on: the plan leaves ${exact(start - waited)} cycles unused`
        : "nothing kept it waiting"));
    else if (!causes.length) list.append(element("li", {className: "binding"}, "it is ready from the beginning"));
    for (const cause of causes) {
      const binds = cause.until === start;
      list.append(element("li", {className: binds ? "binding" : ""}, `until ${exact(cause.until)}: `, ...this.sentence(cause)));
    }
    return list;
  }
  sentence(cause) {
    const {model} = this, residency = cause.residency === NONE ? null : cause.residency;
    const fields = {
      activity: () => this.link(cause.activity, null),
      residency: () => residency === null ? "an operand" : this.link(null, residency),
      link: () => model.links[cause.link],
    };
    return model.words.waits[cause.wait].split(/\{(\w+)\}/).map((text, place) => place % 2 ? fields[text]() : text);
  }

  placed(heading, residencies) {
    if (!residencies.length) return [];
    const {model} = this, all = model.residencies, list = element("ul");
    for (const each of residencies) {
      const address = `${model.memories[all.memory[each]].name}, [${exact(all.offset[each])}, ${exact(all.offset[each] + all.bytes[each])})`;
      const item = element("li", {}, this.link(null, each), `, ${bytes(all.bytes[each])}: ${address}`);
      if (heading === "Reads" && all.filler[each] !== NONE) {
        const by = all.filler[each];
        item.append(model.isTask(by) ? "; computed by " : "; brought by ", this.link(by, null), `, ended ${exact(model.end(by))}`);
      }
      list.append(item);
    }
    return [element("h4", {}, heading), list];
  }
  waiting(activity) {
    const {model} = this, held = model.heldUpBy(activity);
    if (!held.length) return [];
    const list = element("ul", {}, ...held.slice(0, 12).map(each =>
      element("li", {}, this.link(each, null), ` at ${exact(model.start(each))}`)));
    if (held.length > 12) list.append(element("li", {}, `and ${exact(held.length - 12)} more`));
    return [element("h4", {}, "What waits for its end"), list];
  }

  ofResidency(residency) {
    const {model} = this, all = model.residencies, readers = model.readersOf[residency], by = all.filler[residency];
    const facts = [["kind", model.kindNames[model.kind(residency)]], ["bytes", bytes(all.bytes[residency])],
      ["lies in", model.memories[all.memory[residency]].name],
      ["addresses", `[${exact(all.offset[residency])}, ${exact(all.offset[residency] + all.bytes[residency])})`],
      ["cycles", `[${exact(all.start[residency])}, ${exact(all.end[residency])})`]];
    if (by !== NONE) facts.push([model.isTask(by) ? "computed by" : "brought by", this.link(by, null)]);
    if (all.below[residency] !== NONE) facts.push(["in place of", this.link(null, all.below[residency])]);
    const list = element("ul", {}, ...readers.slice(0, 40).map(each =>
      element("li", {}, this.link(each, null), ` at ${exact(model.start(each))}`)));
    if (readers.length > 40) list.append(element("li", {}, `and ${exact(readers.length - 40)} more`));
    return [element("h3", {}, model.residencyName(residency)), this.facts(facts),
      element("h4", {}, readers.length ? "Used by" : "Used by nothing"), list];
  }
}
