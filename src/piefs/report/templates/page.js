"use strict";
/* The interactive part of a report: a scatter of coordinates on a canvas, drawn by hand.
   Whatever comes from data reaches the page as text, never as markup. */
(() => {
  const data = JSON.parse(document.getElementById("shown-rows").textContent);
  const byId = (id) => document.getElementById(id);
  const SPLITS = ["train", "validation", "test"];
  const MOST_LISTED = 50;
  const { classes: CLASS_COLORS, numbers: NUMBER_COLORS } = data.palette;
  const RIGHT = "#8fa3b5", WRONG = CLASS_COLORS[1];

  // --- data -----------------------------------------------------------------------------------

  const TYPES = { uint8: Uint8Array, int32: Int32Array, float32: Float32Array };
  function unpack(packed) {
    if (!packed) return null;
    const text = atob(packed.bytes), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return new TYPES[packed.type](bytes.buffer);
  }
  const n = data.n, K = data.phi.shape[1];
  const phi = unpack(data.phi), split = unpack(data.split), place = unpack(data.place);
  const truth = unpack(data.truth), predicted = unpack(data.predicted);
  const confidence = unpack(data.confidence), loss = unpack(data.loss), images = unpack(data.images);
  const classes = data.class_names, isNumber = classes.length === 0;
  const hasTarget = isNumber || classes.length > 1;

  const rounded = (value) => Number.isFinite(value) ? String(Number(value.toPrecision(5))) : "–";
  const classColor = (c) =>
    c < CLASS_COLORS.length ? CLASS_COLORS[c] : `hsl(${(c * 137.508) % 360} ${55 + (c % 3) * 12}% ${42 + (c % 4) * 7}%)`;
  const valueOf = (values, row) => values === null ? "" : isNumber ? rounded(values[row]) : classes[values[row]];

  function numberColor(t) {
    const at = Math.min(Math.max(t, 0), 1) * (NUMBER_COLORS.length - 1), low = Math.min(Math.floor(at), NUMBER_COLORS.length - 2);
    const part = (color, k) => parseInt(color.slice(1 + 2 * k, 3 + 2 * k), 16);
    const mix = [0, 1, 2].map((k) => Math.round(part(NUMBER_COLORS[low], k) + (at - low) * (part(NUMBER_COLORS[low + 1], k) - part(NUMBER_COLORS[low], k))));
    return `rgb(${mix.join(",")})`;
  }

  // --- what colours can show ---------------------------------------------------------------

  function quantiles(values) {
    const sorted = Float32Array.from(values).filter(Number.isFinite).sort();
    const at = (q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
    return [at(0.01), at(0.99)];
  }
  function numbers(name, values) {
    const [low, high] = quantiles(values), range = high - low || 1, steps = 64;
    const palette = Array.from({ length: steps }, (_, i) => numberColor(i / (steps - 1)));
    const group = (row) => Math.min(steps - 1, Math.max(0, Math.round(((values[row] - low) / range) * (steps - 1))));
    return { name, palette, group, low, high };
  }
  function kinds(name, labels, palette, group) {
    return { name, labels, palette, group };
  }
  const target = data.target === "y" ? (isNumber ? "target" : "class") : data.target;
  const colourings = [];
  if (isNumber) {
    colourings.push(numbers(target, truth));
    if (predicted) colourings.push(numbers(`${target}, predicted`, predicted), numbers("absolute error", loss));
  } else if (hasTarget) {
    const palette = classes.map((_, c) => classColor(c));
    colourings.push(kinds(target, classes, palette, (row) => truth[row]));
    if (predicted) {
      colourings.push(kinds(`${target}, predicted`, classes, palette, (row) => predicted[row]));
      colourings.push(kinds("right or wrong", ["right", "wrong"], [RIGHT, WRONG], (row) => Number(predicted[row] !== truth[row])));
      colourings.push(numbers("confidence", confidence));
    }
  }
  colourings.push(kinds("split", SPLITS, CLASS_COLORS, (row) => split[row]));

  // --- state ------------------------------------------------------------------------------------

  const state = {
    i: 0, j: Math.min(1, K - 1), colouring: colourings[0], hidden: new Set(),
    splits: new Set([1, 2].filter((s) => split.includes(s))), mode: "select",
    view: null, selected: new Set(), pointed: -1, brush: null,
  };
  const canvas = byId("plot"), tip = byId("tip"), context = canvas.getContext("2d");
  const MARGIN = { left: 52, right: 14, top: 14, bottom: 44 };
  const jitter = Float32Array.from({ length: n }, (_, row) => ((row * 0.618034) % 1) - 0.5);

  const across = (row) => phi[row * K + state.i];
  const upward = (row) => K === 1 ? jitter[row] : phi[row * K + state.j];
  const isShown = (row) => state.splits.has(split[row]) && !state.hidden.has(hiddenKey(row));
  const hiddenKey = (row) => state.colouring.labels ? state.colouring.group(row) : -1;

  function fitView() {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let row = 0; row < n; row++) {
      if (!state.splits.has(split[row])) continue;
      x0 = Math.min(x0, across(row)); x1 = Math.max(x1, across(row));
      y0 = Math.min(y0, upward(row)); y1 = Math.max(y1, upward(row));
    }
    if (!Number.isFinite(x0)) [x0, x1, y0, y1] = [-1, 1, -1, 1];
    const dx = (x1 - x0 || 1) * 0.04, dy = (y1 - y0 || 1) * (K === 1 ? 0.6 : 0.04);
    state.view = { x0: x0 - dx, x1: x1 + dx, y0: y0 - dy, y1: y1 + dy };
  }
  const size = () => ({ width: canvas.clientWidth - MARGIN.left - MARGIN.right, height: canvas.clientHeight - MARGIN.top - MARGIN.bottom });
  const toX = (value) => MARGIN.left + ((value - state.view.x0) / (state.view.x1 - state.view.x0)) * size().width;
  const toY = (value) => MARGIN.top + ((state.view.y1 - value) / (state.view.y1 - state.view.y0)) * size().height;
  const fromX = (x) => state.view.x0 + ((x - MARGIN.left) / size().width) * (state.view.x1 - state.view.x0);
  const fromY = (y) => state.view.y1 - ((y - MARGIN.top) / size().height) * (state.view.y1 - state.view.y0);

  // --- drawing ----------------------------------------------------------------------------------

  function ticks(low, high, most) {
    const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw) || 10 * power;
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : Number(value.toPrecision(12)));
    return found;
  }
  function drawAxes(ink, soft, line) {
    const { width, height } = size(), view = state.view;
    context.font = "12px system-ui, sans-serif";
    context.strokeStyle = line; context.fillStyle = soft; context.lineWidth = 1;
    context.textAlign = "center"; context.textBaseline = "top";
    for (const value of ticks(view.x0, view.x1, Math.max(2, width / 90))) {
      context.beginPath(); context.moveTo(toX(value), MARGIN.top); context.lineTo(toX(value), MARGIN.top + height); context.stroke();
      context.fillText(rounded(value), toX(value), MARGIN.top + height + 5);
    }
    context.textAlign = "right"; context.textBaseline = "middle";
    if (K > 1) for (const value of ticks(view.y0, view.y1, Math.max(2, height / 60))) {
      context.beginPath(); context.moveTo(MARGIN.left, toY(value)); context.lineTo(MARGIN.left + width, toY(value)); context.stroke();
      context.fillText(rounded(value), MARGIN.left - 6, toY(value));
    }
    context.fillStyle = ink; context.font = "14px system-ui, sans-serif"; context.textAlign = "center"; context.textBaseline = "bottom";
    context.fillText(phiName(state.i), MARGIN.left + width / 2, canvas.clientHeight - 4);
    if (K > 1) {
      context.save(); context.translate(14, MARGIN.top + height / 2); context.rotate(-Math.PI / 2); context.textBaseline = "middle";
      context.fillText(phiName(state.j), 0, 0); context.restore();
    }
  }
  const SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉";
  const phiName = (k) => "φ" + String(k + 1).split("").map((digit) => SUBSCRIPTS[digit]).join("");

  let scheduled = false;
  function draw() {
    if (scheduled) return;
    scheduled = true;
    requestAnimationFrame(() => { scheduled = false; drawNow(); });
  }
  function drawNow() {
    const ratio = window.devicePixelRatio || 1;
    const [w, h] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
      canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, w, h);
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    drawAxes(ink, soft, line);
    context.save();
    context.beginPath(); context.rect(MARGIN.left, MARGIN.top, size().width, size().height); context.clip();
    drawPoints(ink);
    if (state.brush) drawBrush(ink);
    context.restore();
    tellStatus();
  }
  function drawPoints(ink) {
    const { palette, group } = state.colouring, choosing = state.selected.size > 0;
    const shown = rowsShown(), radius = shown.length > 4000 ? 2.2 : shown.length > 800 ? 2.8 : 3.8;
    const byColor = palette.map(() => []);
    for (const row of shown) byColor[group(row)].push(row);
    const paint = (rows, color, alpha) => {
      context.fillStyle = color; context.globalAlpha = alpha;
      context.beginPath();
      for (const row of rows) {
        const x = toX(across(row)), y = toY(upward(row));
        context.moveTo(x + radius, y); context.arc(x, y, radius, 0, 7);
      }
      context.fill();
    };
    palette.forEach((color, c) => paint(choosing ? byColor[c].filter((row) => !state.selected.has(row)) : byColor[c], color, choosing ? 0.18 : 0.72));
    if (choosing) palette.forEach((color, c) => paint(byColor[c].filter((row) => state.selected.has(row)), color, 0.95));
    context.globalAlpha = 1;
    if (state.pointed >= 0) {
      context.strokeStyle = ink; context.lineWidth = 2;
      context.beginPath(); context.arc(toX(across(state.pointed)), toY(upward(state.pointed)), radius + 4, 0, 7); context.stroke();
    }
  }
  function drawBrush(ink) {
    const { x0, y0, x1, y1 } = state.brush;
    context.strokeStyle = ink; context.fillStyle = ink; context.lineWidth = 1;
    context.globalAlpha = 0.08; context.fillRect(x0, y0, x1 - x0, y1 - y0);
    context.globalAlpha = 1; context.setLineDash([4, 3]); context.strokeRect(x0, y0, x1 - x0, y1 - y0); context.setLineDash([]);
  }
  function rowsShown() {
    const rows = [];
    for (let row = 0; row < n; row++) if (isShown(row)) rows.push(row);
    return rows;
  }
  function tellStatus() {
    const count = rowsShown().length.toLocaleString("en");
    byId("status").textContent = K > 1 ? `${count} rows, ${phiName(state.j)} against ${phiName(state.i)}` : `${count} rows along ${phiName(0)}, spread vertically at random`;
  }

  // --- one row ----------------------------------------------------------------------------------

  function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  }
  function thumbnail(row, scale) {
    const [height, width] = data.image_shape;
    const made = element("canvas", undefined, { class: "thumb", width, height });
    made.style.width = `${scale}px`; made.style.height = `${(scale * height) / width}px`; made.style.flex = "none";
    const pixels = new ImageData(width, height);
    for (let p = 0; p < width * height; p++) {
      const value = images[row * width * height + p];
      pixels.data.set([value, value, value, 255], 4 * p);
    }
    made.getContext("2d").putImageData(pixels, 0, 0);
    return made;
  }
  const rowName = (row) => `${data.unit || "row"} ${place[row]}, ${SPLITS[split[row]]}`;
  function facts(row, mostColumns) {
    const found = [];
    if (hasTarget) found.push([target, valueOf(truth, row), false]);
    if (predicted) {
      const sure = isNumber ? "" : ` (${(100 * confidence[row]).toFixed(0)} %)`;
      found.push(["predicted", valueOf(predicted, row) + sure, !isNumber && predicted[row] !== truth[row]]);
    }
    for (const column of data.columns.slice(0, mostColumns)) {
      const cell = column.cells[row];
      found.push([column.name, cell === null || cell === "" ? "–" : String(cell), false]);
    }
    return found;
  }
  function describe(row, mostColumns) {
    const list = element("dl");
    for (const [name, value, wrong] of facts(row, mostColumns)) {
      list.append(element("dt", name), element("dd", value, wrong ? { class: "wrong" } : {}));
    }
    return list;
  }
  function showTip(row, x, y) {
    state.pointed = row;
    tip.hidden = row < 0;
    if (row >= 0) {
      tip.replaceChildren(element("b", rowName(row)));
      if (images) tip.append(element("br"), thumbnail(row, 84));
      tip.append(describe(row, 12));
      const { clientWidth: w, clientHeight: h } = canvas;
      const left = x + tip.offsetWidth + 18 > w ? Math.max(4, x - tip.offsetWidth - 14) : x + 14;
      tip.style.left = `${left}px`;
      tip.style.top = `${Math.max(4, Math.min(y + 12, h - tip.offsetHeight - 4))}px`;
    }
    draw();
  }
  function nearest(x, y, within) {
    let best = -1, least = within * within;
    for (let row = 0; row < n; row++) {
      if (!isShown(row)) continue;
      const dx = toX(across(row)) - x, dy = toY(upward(row)) - y, distance = dx * dx + dy * dy;
      if (distance < least) { least = distance; best = row; }
    }
    return best;
  }

  // --- selection --------------------------------------------------------------------------------

  function select(brush) {
    const [left, right] = [brush.x0, brush.x1].sort((a, b) => a - b), [top, bottom] = [brush.y0, brush.y1].sort((a, b) => a - b);
    state.selected = new Set(rowsShown().filter((row) => {
      const x = toX(across(row)), y = toY(upward(row));
      return x >= left && x <= right && y >= top && y <= bottom;
    }));
    tellSelection();
  }
  function tellSelection() {
    const rows = [...state.selected];
    byId("selection").hidden = rows.length === 0;
    byId("selected-count").textContent = `${rows.length.toLocaleString("en")} selected`;
    byId("selected-classes").replaceChildren(...counted(rows));
    const listed = [...rows].sort((a, b) => (loss ? loss[b] - loss[a] : a - b)).slice(0, MOST_LISTED);
    const head = element("tr");
    const names = ["row", ...(images ? [""] : []), ...(hasTarget ? [target] : []), ...(predicted ? ["predicted"] : []), ...data.columns.map((column) => column.name)];
    for (const name of names) head.append(element("th", name));
    byId("selected-rows").replaceChildren(head, ...listed.map(tableRow));
    if (rows.length > MOST_LISTED) byId("selected-count").textContent += loss ? `; the ${MOST_LISTED} with the largest loss are listed` : `; ${MOST_LISTED} are listed`;
    draw();
  }
  function counted(rows) {
    const { labels, palette, group, name } = state.colouring;
    if (!labels) {
      const values = rows.map((row) => truth[row]).filter(Number.isFinite);
      const mean = values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
      return isNumber ? [element("span", `mean of ${target}: ${rounded(mean)}`)] : [];
    }
    const counts = labels.map(() => 0);
    for (const row of rows) counts[group(row)]++;
    return counts.map((count, c) => [count, c]).filter(([count]) => count).sort((a, b) => b[0] - a[0]).map(([count, c]) => {
      const made = element("span", undefined, { title: name });
      const dot = element("i", undefined, { class: "dot" });
      dot.style.background = palette[c];
      made.append(dot, element("span", `${labels[c]}: ${count.toLocaleString("en")}`));
      return made;
    });
  }
  function tableRow(row) {
    const made = element("tr"), missed = predicted && !isNumber && predicted[row] !== truth[row];
    made.append(element("td", rowName(row)));
    if (images) { const cell = element("td"); cell.append(thumbnail(row, 32)); made.append(cell); }
    if (hasTarget) made.append(element("td", valueOf(truth, row)));
    if (predicted) made.append(element("td", valueOf(predicted, row), missed ? { class: "wrong" } : {}));
    for (const column of data.columns) made.append(element("td", column.cells[row] === null || column.cells[row] === "" ? "–" : String(column.cells[row])));
    made.addEventListener("pointerenter", () => { state.pointed = row; draw(); });
    made.addEventListener("pointerleave", () => { state.pointed = -1; draw(); });
    return made;
  }
  function clear() { state.selected = new Set(); tellSelection(); }

  // --- legend and controls ------------------------------------------------------------------------

  function makeLegend() {
    const { labels, palette, group, low, high } = state.colouring, legend = byId("legend");
    legend.replaceChildren();
    if (!labels) return legend.append(colourBar(low, high));
    const counts = labels.map(() => 0);
    for (let row = 0; row < n; row++) if (state.splits.has(split[row])) counts[group(row)]++;
    if (labels.length > 6) {
      legend.append(legendAction("all", () => state.hidden.clear()), legendAction("none", () => labels.forEach((_, c) => state.hidden.add(c))));
    }
    labels.forEach((label, c) => {
      if (!counts[c]) return;
      const button = element("button", undefined, { "aria-pressed": String(!state.hidden.has(c)), title: "show or hide", "data-group": c });
      const dot = element("i", undefined, { class: "dot" });
      dot.style.background = palette[c];
      button.append(dot, element("span", `${label} (${counts[c].toLocaleString("en")})`));
      button.addEventListener("click", () => {
        state.hidden.has(c) ? state.hidden.delete(c) : state.hidden.add(c);
        button.setAttribute("aria-pressed", String(!state.hidden.has(c)));
        keepSelectionShown();
      });
      legend.append(button);
    });
  }
  function legendAction(name, act) {
    const button = element("button", name);
    button.addEventListener("click", () => { act(); makeLegend(); keepSelectionShown(); });
    return button;
  }
  function keepSelectionShown() {
    if (state.selected.size) { state.selected = new Set([...state.selected].filter(isShown)); tellSelection(); }
    draw();
  }
  function colourBar(low, high) {
    const made = element("div", undefined, { class: "bar" }), bar = element("canvas", undefined, { width: 256, height: 1 });
    const paint = bar.getContext("2d");
    for (let x = 0; x < 256; x++) { paint.fillStyle = numberColor(x / 255); paint.fillRect(x, 0, 1, 1); }
    made.append(element("span", `≤ ${rounded(low)}`), bar, element("span", `≥ ${rounded(high)}`));
    return made;
  }
  function fillSelect(id, names, chosen, act) {
    const made = byId(id);
    names.forEach((name, k) => made.append(element("option", name, { value: k })));
    made.value = String(chosen);
    made.addEventListener("change", () => act(Number(made.value)));
  }
  function setMode(mode) {
    state.mode = mode;
    canvas.classList.toggle("move", mode === "move");
    for (const name of ["select", "move"]) byId(`mode-${name}`).setAttribute("aria-pressed", String(name === mode));
  }
  function zoom(factor, x, y) {
    const view = state.view, cx = fromX(x), cy = fromY(y);
    state.view = { x0: cx + (view.x0 - cx) * factor, x1: cx + (view.x1 - cx) * factor, y0: cy + (view.y0 - cy) * factor, y1: cy + (view.y1 - cy) * factor };
    draw();
  }
  const zoomCentre = (factor) => zoom(factor, MARGIN.left + size().width / 2, MARGIN.top + size().height / 2);

  function makeControls() {
    const names = Array.from({ length: K }, (_, k) => phiName(k));
    fillSelect("axis-i", names, state.i, (k) => { state.i = k; fitView(); draw(); });
    fillSelect("axis-j", names, state.j, (k) => { state.j = k; fitView(); draw(); });
    if (K === 1) document.querySelectorAll("#axis-i, #axis-j").forEach((made) => { made.parentElement.hidden = true; });
    fillSelect("colour", colourings.map((colouring) => colouring.name), 0, (c) => {
      state.colouring = colourings[c]; state.hidden.clear(); makeLegend(); tellSelection();
    });
    SPLITS.forEach((name, s) => {
      if (!split.includes(s)) return;
      const label = element("label"), box = element("input", undefined, { type: "checkbox", id: `split-${name}` });
      box.checked = state.splits.has(s);
      box.addEventListener("change", () => {
        box.checked ? state.splits.add(s) : state.splits.delete(s);
        fitView(); makeLegend(); keepSelectionShown();
      });
      label.append(box, ` ${name} `);
      byId("splits").append(label);
    });
    byId("mode-select").addEventListener("click", () => setMode("select"));
    byId("mode-move").addEventListener("click", () => setMode("move"));
    byId("zoom-in").addEventListener("click", () => zoomCentre(1 / 1.5));
    byId("zoom-out").addEventListener("click", () => zoomCentre(1.5));
    byId("reset").addEventListener("click", () => { fitView(); draw(); });
    byId("clear").addEventListener("click", clear);
  }

  // --- pointers: mouse, pen and fingers -----------------------------------------------------------

  const pointers = new Map();
  let gesture = null;
  const at = (event) => { const box = canvas.getBoundingClientRect(); return { x: event.clientX - box.left, y: event.clientY - box.top }; };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, at(event));
    const moving = state.mode === "move" || event.shiftKey;
    gesture = { start: at(event), last: at(event), moved: false, moving, pinch: pointers.size === 2 ? spread() : 0 };
    if (pointers.size === 2) state.brush = null;
  });
  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (!pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") showTip(nearest(point.x, point.y, 14), point.x, point.y);
      return;
    }
    pointers.set(event.pointerId, point);
    if (pointers.size === 2) return pinch();
    if (!gesture) return;
    gesture.moved ||= Math.hypot(point.x - gesture.start.x, point.y - gesture.start.y) > 5;
    if (!gesture.moved) return;
    tip.hidden = true; state.pointed = -1;
    if (gesture.moving) pan(point); else { state.brush = { x0: gesture.start.x, y0: gesture.start.y, x1: point.x, y1: point.y }; draw(); }
    gesture.last = point;
  });
  function release(event) {
    if (!pointers.delete(event.pointerId) || !gesture || pointers.size) return;
    const point = at(event), { moved, start } = gesture;
    gesture = null;
    if (event.type === "pointerup" && !moved) return showTip(nearest(start.x, start.y, event.pointerType === "mouse" ? 14 : 26), point.x, point.y);
    if (state.brush) { const brush = state.brush; state.brush = null; select(brush); }
  }
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") showTip(-1); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const point = at(event);
    zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 250), point.x, point.y);
  }, { passive: false });
  function spread() {
    const [a, b] = [...pointers.values()];
    return Math.hypot(a.x - b.x, a.y - b.y) || 1;
  }
  function pinch() {
    const [a, b] = [...pointers.values()], now = spread();
    gesture.moved = true;
    zoom(gesture.pinch / now, (a.x + b.x) / 2, (a.y + b.y) / 2);
    gesture.pinch = now;
  }
  function pan(point) {
    const dx = fromX(gesture.last.x) - fromX(point.x), dy = fromY(gesture.last.y) - fromY(point.y), view = state.view;
    state.view = { x0: view.x0 + dx, x1: view.x1 + dx, y0: view.y0 + dy, y1: view.y1 + dy };
    draw();
  }

  // --- the hardest rows ----------------------------------------------------------------------------

  function makeHardest() {
    const place = byId("hardest");
    if (!place || !data.hardest) return;
    for (const row of data.hardest) {
      const card = element("div", undefined, { class: images ? "card with-image" : "card", title: "show in the plot" });
      if (images) card.append(thumbnail(row, 72));
      const text = element("div");
      text.append(element("b", rowName(row)), describe(row, images ? 0 : 5));
      card.append(text);
      card.addEventListener("click", () => {
        state.splits.add(2); byId("split-test").checked = true;
        state.hidden.clear(); makeLegend();
        state.selected = new Set([row]); tellSelection();
        byId("explore").scrollIntoView({ behavior: "smooth" });
      });
      place.append(card);
    }
  }

  makeControls();
  fitView();
  makeLegend();
  makeHardest();
  drawNow();
  new ResizeObserver(draw).observe(canvas);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
})();
