// The page that shows an explanation: one file of HTML, style and script, without anything from elsewhere. @data@ and
// @timeline@ stand for the JSON (explanation.h).
#pragma once

namespace lathe::driver {

inline constexpr char explain_page[] = R"html(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Lathe report</title>
<style>
:root { --bg:#fff; --fg:#1c2024; --dim:#667; --line:#d8dce2; --soft:#f3f5f8; --a:#2463c5; --b:#9db9e6; --warn:#b5431f;
  --ok:#2b7a4b; }
@media (prefers-color-scheme: dark) { :root { --bg:#15181c; --fg:#e4e7eb; --dim:#98a1ac; --line:#333a43;
  --soft:#1f242a; --a:#6ea3f0; --b:#35527f; --warn:#f08a5d; --ok:#6cc690; } }
* { box-sizing:border-box }
body { margin:0; font:14px/1.45 system-ui,sans-serif; color:var(--fg); background:var(--bg) }
nav { position:sticky; top:0; z-index:2; display:flex; gap:4px; align-items:baseline; padding:8px 20px;
  background:var(--bg); border-bottom:1px solid var(--line); flex-wrap:wrap }
nav b { margin-right:16px; font-size:16px } nav a { padding:2px 8px; color:var(--fg); text-decoration:none;
  border-radius:4px } nav a:hover { background:var(--soft) }
main { padding:0 20px 60px; max-width:1500px; margin:auto } section { padding-top:46px; margin-top:-26px }
h2 { font-size:18px; margin:12px 0 8px } .dim { color:var(--dim); overflow-wrap:anywhere }
.cards { display:flex; flex-wrap:wrap; gap:10px; margin:12px 0 } .card { background:var(--soft); padding:8px 14px;
  border-radius:6px; min-width:130px } .card b { display:block; font-size:18px; font-weight:600 }
table { border-collapse:collapse; width:100% } th,td { padding:3px 8px; text-align:right; border-bottom:1px solid
  var(--line); white-space:nowrap } th { cursor:pointer; position:sticky; top:42px; background:var(--bg);
  font-weight:600 } th.l,td.l { text-align:left } td.w { white-space:normal }
tbody tr.row { cursor:pointer } tbody tr.row:hover { background:var(--soft) } tr.open { background:var(--soft) }
.bar { display:inline-block; height:10px; background:var(--b); vertical-align:middle; border-radius:2px }
.bar i { display:block; height:10px; background:var(--a); border-radius:2px }
.bad { color:var(--warn) } .good { color:var(--ok) }
pre { margin:0; padding:10px; overflow:auto; max-height:560px; background:var(--soft); border-radius:6px;
  font:12px/1.4 ui-monospace,monospace; text-align:left; white-space:pre }
.tabs { display:flex; gap:4px; margin:6px 0; flex-wrap:wrap } button { font:inherit; color:var(--fg); background:none;
  border:1px solid var(--line); border-radius:4px; padding:2px 10px; cursor:pointer } button.on { background:var(--b);
  border-color:var(--a) }
.frame { border:1px solid var(--line); border-radius:6px; overflow:auto; max-height:680px }
svg text { font:11px system-ui,sans-serif; fill:var(--fg) } .node rect { fill:var(--soft); stroke:var(--line) }
.node.kernel { cursor:pointer } .node.hit rect { stroke:var(--a); stroke-width:2 } .edge { fill:none;
  stroke:var(--dim); stroke-opacity:.45 } .edge.hit { stroke:var(--a); stroke-opacity:1; stroke-width:1.6 }
#tip { position:fixed; display:none; z-index:9; pointer-events:none; max-width:520px; padding:6px 10px;
  background:var(--fg); color:var(--bg); border-radius:5px; font-size:12px; white-space:pre-wrap }
input { font:inherit; padding:2px 8px; border:1px solid var(--line); border-radius:4px; background:var(--bg);
  color:var(--fg) }
</style></head><body>
<nav><b id="title"></b><a href="#summary">Summary</a><a href="#kernels">Kernels</a><a href="#graph">Graph</a>
<a href="#memory">Memory</a><a href="#timeline">Timeline</a><a href="#remarks">Declined</a>
<a href="#compile">Compile time</a></nav>
<main><section id="summary"></section><section id="kernels"></section><section id="graph"></section>
<section id="memory"></section><section id="timeline"></section><section id="remarks"></section>
<section id="compile"></section></main><div id="tip"></div>
<script type="application/json" id="data">@data@</script>
<script type="application/json" id="events">@timeline@</script>
<script>
"use strict";
const read = id => JSON.parse(document.getElementById(id).textContent);
const D = read("data"), EVENTS = read("events");
const at = id => document.getElementById(id);

// ---- small things ----
function make(tag, attributes = {}, ...children) {
  const svg = ["svg", "g", "rect", "path", "text", "line"].includes(tag);
  const e = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value); else e.setAttribute(name, value);
  e.append(...children.filter(c => c !== null && c !== undefined));
  return e;
}
const digits = (x, n = 3) => !Number.isFinite(x) ? "" : x === 0 ? "0" :
  Math.abs(x) >= 1000 ? Math.round(x).toLocaleString("en") : Number(x.toPrecision(n)).toString();
const percent = x => x === undefined || x === null ? "" : (100 * x).toFixed(x < 0.1 ? 1 : 0) + " %";
const bytes = x => x >= 1e6 ? digits(x / 1e6) + " MB" : x >= 1e3 ? digits(x / 1e3) + " KB" : x + " B";
const tip = at("tip");
function tips(e, text) {
  e.addEventListener("mousemove", m => {
    tip.textContent = text; tip.style.display = "block";
    tip.style.left = Math.min(m.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(m.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
  });
  e.addEventListener("mouseleave", () => tip.style.display = "none");
  return e;
}
function tabs(rows, show) {
  const buttons = rows.map(([title, value]) => make("button", { onclick: e => {
    for (const b of buttons) b.classList.toggle("on", b === e.currentTarget);
    show(value);
  } }, title));
  if (buttons.length) { buttons[0].classList.add("on"); show(rows[0][1]); }
  return make("div", { class: "tabs" }, ...buttons);
}

// ---- summary ----
const kernels = D.kernels, perRun = k => (k.us || 0) * (k.calls || 0);
const total = kernels.reduce((sum, k) => sum + perRun(k), 0);
const limits = kernels.reduce((sum, k) => sum + (k.limit_us || 0) * (k.calls || 0), 0);
at("title").textContent = "Lathe: " + D.model;
document.title = "Lathe report: " + D.model;
{
  const compile = D.rows.reduce((sum, r) => sum + r.ms, 0);
  const card = (value, what) => make("div", { class: "card" }, make("b", {}, value), what);
  const cards = make("div", { class: "cards" }, card(kernels.length, "different kernels"));
  if (D.run) cards.append(card(digits(total / 1e3) + " ms", "in kernels, a run"),
    card(limits ? percent(limits / total) : "unknown", "of it is the kernels' limits"));
  cards.append(card(bytes(D.memory.arena), "planned peak"), card(bytes(D.memory.unplanned), "if nothing were shared"),
    card(bytes(D.memory.weights), "weights"), card(digits(compile) + " ms", "compile time, all threads"));
  const machine = D.run ? `${digits(D.run.operations_per_second / 1e9)} GFLOP/s of float32` +
    D.run.levels.map(l => `, ${l.name} ${digits(l.bytes_per_second / 1e9)} GB/s`).join("") +
    `; mean of ${D.run.runs} runs on ${D.run.threads} thread${D.run.threads === 1 ? "" : "s"}` :
    "not run: no times (fix symbolic sizes with --dim, or give inputs with --input)";
  at("summary").append(make("h2", {}, "Summary"), make("div", { class: "dim" }, D.target + " · Lathe " + D.lathe +
    " · LLVM " + D.llvm), make("div", { class: "dim" }, machine), cards);
}

// ---- kernels ----
const inner = k => k.code && k.code.inner;
const COLUMNS = [
  ["kernel", k => k.name, "l"], ["share", k => k.share, "", percent], ["µs a call", k => k.us, "", digits],
  ["calls", k => k.calls, "", digits], ["MFLOP", k => k.operations / 1e6, "", digits],
  ["KB", k => k.bytes / 1e3, "", digits], ["limit µs", k => k.limit_us, "", digits],
  ["of limit", k => k.limit_us && k.us ? k.limit_us / k.us : undefined, "", percent], ["bound", k => k.bound, "l"],
  ["predicted µs", k => k.predicted_us, "", digits],
  ["rule", k => k.rule || "none", "l"], ["inner loop", k => inner(k) && inner(k).instructions, "", digits],
  ["spills in it", k => inner(k) && inner(k).spills, "", digits],
];
let sorted = D.run ? 1 : 0, body, opened = null;
function detail(k) {
  const pre = make("pre"), programs = [["Schedule", k.trace], ["Tensor program", k.tensor_program],
    ["Scheduled", k.scheduled], ["Kernel", k.kernel], ["LLVM IR", k.ll], ["Assembly", k.asm]].filter(([, t]) => t);
  const code = inner(k), facts = [];
  if (k.decisions) facts.push("Decisions: " + k.decisions);
  if (code) facts.push(`Hottest loop: ${code.instructions} instructions, ${code.arithmetic} of vector arithmetic, ` +
    `${code.loads} loads, ${code.stores} stores, ${code.spills} spills and reloads, ${code.registers} vector registers`);
  if (k.code) facts.push(`Function: ${k.code.instructions} instructions, ${k.code.spills} spills and reloads`);
  const box = make("td", { colspan: COLUMNS.length, class: "l w" }, ...facts.map(f => make("div", {}, f)),
    ...k.declined.map(d => make("div", { class: "dim" }, `declined by ${d.by}: ${d.why}`)),
    tabs(programs, t => pre.textContent = t), pre);
  return make("tr", {}, box);
}
function open(k) {
  opened = opened === k ? null : k;
  fill();
  if (opened) document.querySelector("tr.open").scrollIntoView({ block: "nearest" });
}
function fill() {
  const value = COLUMNS[sorted][1], filter = at("filter").value;
  const rows = kernels.filter(k => k.name.includes(filter) || (k.rule || "").includes(filter));
  rows.sort((a, b) => { const x = value(a), y = value(b);
    return typeof x === "string" ? x.localeCompare(y) : (y === undefined ? -1 : y) - (x === undefined ? -1 : x); });
  body.replaceChildren();
  const most = Math.max(...kernels.map(k => k.share || 0));
  for (const k of rows) {
    const row = make("tr", { class: "row" + (k === opened ? " open" : ""), onclick: () => open(k) });
    for (const [title, of, side, form] of COLUMNS) {
      const v = of(k), cell = make("td", { class: side }, form ? form(v) : v || "");
      if (title === "share" && v) {
        const bar = make("span", { class: "bar", style: `width:${Math.max(1, 90 * v / most)}px` });
        cell.prepend(" "); cell.style.width = "150px";
        if (k.limit_us) bar.append(make("i", { style: `width:${Math.min(100, 100 * k.limit_us / k.us)}%` }));
        cell.prepend(tips(bar, "dark: the part that its limit would take"));
      }
      if (title === "spills in it" && v > 0) cell.classList.add("bad");
      row.append(cell);
    }
    body.append(row);
    if (k === opened) body.append(detail(k));
  }
}
{
  body = make("tbody");
  const head = make("tr", {}, ...COLUMNS.map(([title, , side], i) =>
    make("th", { class: side, onclick: () => { sorted = i; fill(); } }, title)));
  at("kernels").append(make("h2", {}, "Kernels"), make("p", { class: "dim" },
    "A kernel's limit is the larger of its operations over the machine's peak and its bytes over the bandwidth of the " +
    "memory that holds them, both measured beside the run. A row opens to its schedule, programs and code."),
    make("input", { id: "filter", placeholder: "filter by name or rule", oninput: () => fill() }),
    make("table", {}, make("thead", {}, head), body));
  fill();
}

// ---- graph ----
const byName = new Map(kernels.map(k => [k.name, k]));
function layers(nodes) {
  const depth = [], rows = [];
  nodes.forEach((n, i) => depth[i] = n.inputs.length ? 1 + Math.max(...n.inputs.map(j => depth[j])) : 0);
  nodes.forEach((n, i) => {  // inputs stand just above their first user
    if (n.inputs.length) return;
    const users = nodes.map((m, j) => m.inputs.includes(i) ? depth[j] : Infinity);
    const first = Math.min(...users);
    if (first < Infinity) depth[i] = first - 1;
  });
  nodes.forEach((n, i) => (rows[depth[i]] = rows[depth[i]] || []).push(i));
  return [...rows].map(r => r || []);
}
function draw(graph) {
  const nodes = graph.nodes, W = 190, H = 34, GX = 22, GY = 26, x = [], y = [], rows = layers(nodes);
  rows.forEach((row, r) => {
    const middle = i => nodes[i].inputs.length ?
      nodes[i].inputs.reduce((s, j) => s + (x[j] || 0), 0) / nodes[i].inputs.length : x.length * 0;
    row.sort((a, b) => middle(a) - middle(b));
    let next = 0;
    for (const i of row) { x[i] = next = Math.max(next, middle(i)); y[i] = r * (H + GY); next += W + GX; }
  });
  const width = Math.max(...x.filter(v => v !== undefined), 0) + W + 20, height = rows.length * (H + GY) + 20;
  const svg = make("svg", { width, height, viewBox: `-10 -10 ${width} ${height}` }), edges = [];
  nodes.forEach((n, i) => { for (const j of n.inputs) {
    const x1 = x[j] + W / 2, y1 = y[j] + H, x2 = x[i] + W / 2, y2 = y[i], m = Math.max(14, (y2 - y1) / 2);
    const path = make("path", { class: "edge", d: `M${x1},${y1} C${x1},${y1 + m} ${x2},${y2 - m} ${x2},${y2}` });
    edges.push([i, j, path]); svg.append(path);
  } });
  nodes.forEach((n, i) => {
    const k = byName.get(n.op), box = make("rect", { width: W, height: H, rx: 5 });
    const text = (s, dy, dim) => make("text", { x: 8, y: dy, style: dim ? "fill:var(--dim)" : "" },
      s.length > 29 ? s.slice(0, 28) + "…" : s);
    if (k && k.share) box.setAttribute("style", `fill:color-mix(in srgb, var(--a) ${Math.min(80, 300 * k.share)}%,` +
      " var(--soft))");
    const g = make("g", { class: "node" + (k ? " kernel" : ""), transform: `translate(${x[i]},${y[i]})`,
      onmouseenter: () => edges.forEach(([a, b, p]) => p.classList.toggle("hit", a === i || b === i)),
      onclick: () => { if (k) { if (opened !== k) open(k); location.hash = "#kernels";
        document.querySelector("tr.open").scrollIntoView({ block: "center" }); } } },
      box, text(n.op === "input" ? n.name : n.op, 14), text(n.type, 28, true));
    tips(g, `${n.op}  ${n.name}\n${n.type}` + (n.node ? `\nnode ${n.node}` : "") +
      (n.output ? "\nan output of the model" : "") + (k && k.share ? `\n${percent(k.share)} of the time` : ""));
    if (n.output) box.setAttribute("stroke-width", 2.5);
    svg.append(g);
  });
  return svg;
}
{
  const frame = make("div", { class: "frame" }), views = [];
  for (const g of D.graphs) {
    const text = make("pre", { style: "max-height:none" }, g.text);
    let drawn = null;
    views.push([g.title + ` (${g.nodes.filter(n => n.op !== "input").length} values)`,
      () => drawn = drawn || draw(g)], [g.title + ", text", () => text]);
  }
  at("graph").append(make("h2", {}, "Graph"), make("p", { class: "dim" },
    "Above: what goes in. The darker a kernel, the more of the time it takes; a click opens it."),
    tabs(views, view => frame.replaceChildren(view())), frame);
}

// ---- memory ----
{
  const m = D.memory, W = Math.max(760, Math.min(3000, m.steps.length * 14)), H = 360, top = Math.max(m.arena, 1);
  const svg = make("svg", { width: W + 90, height: H + 30 }), steps = Math.max(m.steps.length, 1);
  for (let i = 0; i <= 4; ++i) {
    const y = H - H * i / 4 + 6;
    svg.append(make("line", { x1: 80, x2: W + 80, y1: y, y2: y, stroke: "var(--line)" }),
      make("text", { x: 2, y: y + 4 }, bytes(top * i / 4)));
  }
  m.tensors.forEach((t, i) => {
    const box = make("rect", { x: 80 + W * t.from / steps, width: Math.max(2, W * (t.to - t.from + 1) / steps - 1),
      y: H - H * (t.offset + t.bytes) / top + 6, height: Math.max(1, H * t.bytes / top - 0.5),
      fill: `hsl(${i * 47 % 360} 45% 60% / .75)` });
    svg.append(tips(box, `${t.name}\n${bytes(t.bytes)} at ${bytes(t.offset)}\nwritten by step ${t.from} ` +
      `(${m.steps[t.from] || ""}), last read by step ${t.to} (${m.steps[t.to] || "the end"})`));
  });
  svg.append(make("text", { x: 80, y: H + 24 }, `kernels in order, 0 to ${m.steps.length - 1}`));
  at("memory").append(make("h2", {}, "Memory"), make("p", { class: "dim" },
    `Each intermediate tensor of known size: where it lies in the arena (up) and from when to when (across). ` +
    `${m.in_place} took the memory of an operand` + (m.slots ? `; ${m.slots} slots are sized when the model runs` : "") +
    "."), make("div", { class: "frame" }, svg));
}

// ---- timeline ----
{
  const section = at("timeline");
  section.append(make("h2", {}, "Timeline"));
  if (!EVENTS) section.append(make("p", { class: "dim" }, "The model was not run."));
  else {
    const events = EVENTS.traceEvents, end = events.length ? events.at(-1).ts + events.at(-1).dur : 1, W = 1400;
    const svg = make("svg", { width: W + 10, height: 64 });
    events.forEach((e, i) => {
      const k = byName.get(e.name), hue = k ? [...(k.rule || "none")].reduce((s, c) => s * 7 + c.charCodeAt(0), 3) : 0;
      svg.append(tips(make("rect", { x: W * e.ts / end, width: Math.max(0.6, W * e.dur / end - 0.3), y: 6, height: 34,
        fill: k ? `hsl(${hue % 360} 45% 55%)` : "var(--dim)", onclick: () => k && open(k) }),
        `${e.name}\n${digits(e.dur)} µs` + (e.args.node ? `\nnode ${e.args.node}` : "")));
    });
    svg.append(make("text", { x: 0, y: 58 }, "0"), make("text", { x: W - 70, y: 58 }, digits(end / 1e3) + " ms"));
    const save = () => { const link = make("a", { download: "timeline.json",
      href: URL.createObjectURL(new Blob([JSON.stringify(EVENTS)], { type: "application/json" })) }); link.click(); };
    section.append(make("p", { class: "dim" }, "The instructions of the program in order, each as long as it took in " +
      "the mean; colours are rules. The file opens in ui.perfetto.dev and chrome://tracing. "),
      make("button", { onclick: save }, "Save for Perfetto"), make("div", { class: "frame" }, svg));
  }
}

// ---- declined, compile time ----
{
  const groups = new Map();
  for (const r of D.remarks.filter(r => !r.taken && !byName.has(r.subject))) {
    const key = r.pass + "\n" + r.text;
    groups.set(key, [...(groups.get(key) || []), r.subject]);
  }
  const rows = [...groups].map(([key, subjects]) => {
    const names = [...new Set(subjects)], [pass, text] = key.split("\n");
    return { pass, text, count: subjects.length, subjects: names.slice(0, 6).join(", ") + (names.length > 6 ? ", …" : "") };
  });
  at("remarks").append(make("h2", {}, "Declined"), make("p", { class: "dim" },
    "What passes said they left as it was, and why; what the schedule rules said stands with each kernel."),
    rows.length ? make("table", {}, make("tbody", {}, ...rows.map(r => make("tr", {}, make("td", { class: "l" }, r.pass),
      make("td", { class: "l w" }, r.text), make("td", {}, r.count + " ×"), make("td", { class: "l w dim" },
      r.subjects))))) : make("p", {}, "Nothing."));
  const most = Math.max(...D.rows.map(r => r.ms), 1e-9);
  at("compile").append(make("h2", {}, "Compile time"), make("table", {}, make("tbody", {}, ...D.rows.map(r =>
    make("tr", {}, make("td", { class: "l" }, r.stage), make("td", { class: "l" }, r.row), make("td", {},
      digits(r.ms) + " ms"), make("td", { class: "l", style: "width:60%" },
      make("span", { class: "bar", style: `width:${100 * r.ms / most}%` })))))));
}
</script></body></html>
)html";

}  // namespace lathe::driver
