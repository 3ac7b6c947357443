// What every drawing needs: sharp canvases, axes of time, fillings, and the tooltip.

const FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif";

function sharp(canvas, height) {
  const scale = window.devicePixelRatio || 1, width = canvas.clientWidth || 900;
  if (height !== undefined) canvas.style.height = `${height}px`;
  const tall = height ?? canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(tall * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(tall * scale);
  }
  const to = canvas.getContext("2d");
  to.setTransform(scale, 0, 0, scale, 0, 0);
  to.clearRect(0, 0, width, tall);
  to.font = `11px ${FONT}`;
  to.textBaseline = "middle";
  return {to, width, height: tall};
}

// Round numbers in [from, to], about one for each `apart` pixels.
function ticks(from, to, width, apart = 95) {
  const rough = (to - from) / Math.max(1, width / apart);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max([1, 2, 5, 10].map(each => each * power).find(each => each >= rough), 1);
  const found = [];
  for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) found.push(tick);
  return found;
}

// Powers of two, for bytes.
function byteTicks(top, height) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(1, top / Math.max(2, height / 42))));
  const found = [];
  for (let tick = 0; tick <= top; tick += step) found.push(tick);
  return found;
}

function drawTimeAxis(to, view, width, top, bottom) {
  to.textAlign = "center";
  for (const tick of ticks(view.from, view.to, width - GUTTER)) {
    const x = view.x(tick, width);
    to.fillStyle = "#ececec";
    to.fillRect(x, top, 1, bottom - top);
    to.fillStyle = "#5c5c5c";
    to.fillText(exact(tick), Math.min(Math.max(x, GUTTER + 4), width - 34), bottom + 9);
  }
}

// Text that is cut in its middle to fit.
function cut(to, text, room) {
  if (to.measureText(text).width <= room) return text;
  let keep = Math.max(1, Math.floor(text.length * room / to.measureText(text).width) - 1);
  while (keep > 1) {
    const head = Math.floor(keep / 3), short = `${text.slice(0, head)}…${text.slice(text.length - keep + head)}`;
    if (to.measureText(short).width <= room) return short;
    keep -= 1;
  }
  return "";
}

// A colour for each operator; where colours come round again, they are hatched.
const fillings = new Map();
function filling(to, model, operator) {
  const colours = model.colours.operators, turn = Math.floor(operator / colours.length) % 4;
  const colour = colours[operator % colours.length];
  if (turn === 0) return colour;
  if (!fillings.has(operator)) fillings.set(operator, hatched(to, colour, turn, "rgba(0,0,0,.55)"));
  return fillings.get(operator);
}
function hatched(to, colour, turn, ink) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 8;
  const inner = tile.getContext("2d");
  if (colour) { inner.fillStyle = colour; inner.fillRect(0, 0, 8, 8); }
  inner.strokeStyle = ink;
  inner.lineWidth = 1.1;
  inner.beginPath();
  for (const shift of [-8, 0, 8]) {
    if (turn !== 2) { inner.moveTo(shift, 8); inner.lineTo(shift + 8, 0); }
    if (turn !== 1) { inner.moveTo(shift, 0); inner.lineTo(shift + 8, 8); }
  }
  inner.stroke();
  return to.createPattern(tile, "repeat");
}

function showTip(event, lines) {
  const tip = byId("tip");
  if (!lines) { tip.hidden = true; return; }
  tip.textContent = lines.join("\n");
  tip.hidden = false;
  const left = event.clientX + 14, top = event.clientY + 14;
  tip.style.left = `${Math.min(left, window.innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(top, window.innerHeight - tip.offsetHeight - 8)}px`;
}

// Moving by dragging, zooming by the wheel with Ctrl, choosing by a click, hovering.
function handlePointer(canvas, view, {hover, choose}) {
  let grabbed = null, moved = false;
  canvas.addEventListener("pointerdown", event => {
    grabbed = {x: event.offsetX, from: view.from, to: view.to};
    moved = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", event => {
    if (!grabbed) { showTip(event, hover(event.offsetX, event.offsetY)); return; }
    if (Math.abs(event.offsetX - grabbed.x) > 3) moved = true;
    if (!moved) return;
    showTip(event, null);
    const by = (grabbed.x - event.offsetX) / (canvas.clientWidth - GUTTER) * (grabbed.to - grabbed.from);
    view.show(grabbed.from + by, grabbed.to + by);
  });
  canvas.addEventListener("pointerup", event => {
    if (grabbed && !moved) choose(event.offsetX, event.offsetY);
    grabbed = null;
  });
  canvas.addEventListener("pointerleave", event => showTip(event, null));
  canvas.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    if (event.ctrlKey || event.metaKey)
      view.zoom(Math.exp(Math.sign(event.deltaY) * 0.25), view.cycle(event.offsetX, canvas.clientWidth));
    else view.move(event.deltaX / canvas.clientWidth);
  }, {passive: false});
}
