"use strict";
/* The timeline: load with its lines above, lanes of what happened below, one time axis. */
(() => {
  const box = document.getElementById("timeline");
  if (!box || !window.uPlot) return;
  const says = document.getElementById("timeline-says");
  const HEIGHT = 320;
  const LANES = ["turns", "compactions", "latches", "replies", "commands"];
  const LANE = 18; // pixels a lane takes at the foot of the plot
  const FOOT = LANES.length * LANE + 8;
  const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000]; // seconds
  const REST = "Hover for the numbers.";
  let data = null;
  let plot = null;
  let marks = [];
  let loading = false;
  let again = false;

  // Colours from the page's own tokens, resolved for the present theme.
  const probe = document.createElement("span");
  probe.hidden = true;
  box.after(probe);
  const token = (name) => { probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
  let ink = {};
  const readInk = () => { ink = { line: token("--line"), ink: token("--ink"), dim: token("--ink-3"), accent: token("--accent"), critical: token("--critical"), warning: token("--warning"), good: token("--ok"), info: token("--info"), active: token("--accent"), neutral: token("--ink-3") }; };

  const number = (n) => (n == null ? "?" : Math.round(n).toLocaleString("en-US"));
  const pad = (n) => String(n).padStart(2, "0");
  const clock = (s) => { const d = new Date(s * 1000); return `${d.getUTCDate()} ${d.toLocaleString("en-US", { month: "short", timeZone: "UTC" })} ${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`; };

  // 24 hours, UTC; the day where it changes.
  const stamp = (s, before, step) => {
    const d = new Date(s * 1000);
    const day = `${d.getUTCDate()} ${d.toLocaleString("en-US", { month: "short", timeZone: "UTC" })}`;
    if (step >= 86400) return day;
    const text = `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}${step < 60 ? `:${pad(d.getUTCSeconds())}` : ""}`;
    return before != null && new Date(before * 1000).getUTCDate() !== d.getUTCDate() ? `${day} ${text}` : text;
  };

  const columns = () => {
    const x = data.at.map((ms) => ms / 1000);
    const soft = (i) => data.load[i] != null && (!data.measured[i] || data.measured[i - 1] === false || data.measured[i + 1] === false);
    const most = ceiling();
    const drawn = data.load.map((v) => (v != null && v > most ? null : v));
    return [x, drawn.map((v, i) => (data.measured[i] ? v : null)), drawn.map((v, i) => (soft(i) ? v : null)), data.trigger, data.budget, data.window];
  };
  const known = () => data.load.some((v) => v != null);
  const numbers = (...lists) => lists.flat().filter((v) => v != null);
  // A count beyond twice every window cannot be a prompt: it stands at the edge and leaves the scale to the others.
  const ceiling = () => { const lines = numbers(data.window, data.budget, data.trigger); return lines.length ? 2 * Math.max(...lines) : Infinity; };
  const highest = () => { const most = ceiling(); return Math.max(1000, ...numbers(data.load, data.trigger, data.budget).filter((v) => v <= most)); };

  // The axis holds readings and marks alike, and half a minute where there is only one moment.
  const span = () => {
    const times = [...data.at, ...Object.values(data.lanes).flat().flatMap((m) => [m.at, m.to || m.at])].filter((t) => t != null).map((t) => t / 1000);
    const from = Math.min(...times);
    const to = Math.max(...times);
    return to - from < 30 ? [from - 5, from + 30] : [from, to];
  };

  const drawLanes = (u) => {
    const ctx = u.ctx;
    const px = devicePixelRatio;
    const left = u.bbox.left;
    const right = left + u.bbox.width;
    const base = u.bbox.top + u.bbox.height - FOOT * px + 6 * px;
    marks = [];
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, u.bbox.top, u.bbox.width, u.bbox.height);
    ctx.clip();
    LANES.forEach((name, lane) => {
      const y = base + (lane + 0.5) * LANE * px;
      ctx.strokeStyle = ink.line;
      ctx.lineWidth = px;
      ctx.beginPath(); ctx.moveTo(left, y); ctx.lineTo(right, y); ctx.stroke();
      for (const mark of data.lanes[name]) {
        const from = u.valToPos(mark.at / 1000, "x", true);
        const band = "to" in mark;
        const to = band ? u.valToPos((mark.to || Date.now()) / 1000, "x", true) : from;
        if (to < left || from > right) continue;
        ctx.fillStyle = ctx.strokeStyle = ink[mark.tone] || ink.neutral;
        if (band) ctx.fillRect(Math.max(left, from), y - 4 * px, Math.max(2 * px, Math.min(right, to) - Math.max(left, from)), 8 * px);
        else shape(ctx, mark.tone, from, y, 5 * px);
        marks.push({ mark, x0: Math.max(left, from) / px - 6, x1: Math.min(right, to) / px + 6, y: y / px });
      }
    });
    ctx.restore();
    ctx.save();
    ctx.font = `${11 * px}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "right";
    ctx.fillStyle = ink.dim;
    LANES.forEach((name, lane) => ctx.fillText(name, left - 6 * px, base + (lane + 0.5) * LANE * px));
    ctx.restore();
  };
  // What lies beyond the scale: an arrow at the upper edge with its number.
  const drawBeyond = (u) => {
    const ctx = u.ctx;
    const px = devicePixelRatio;
    const most = ceiling();
    const right = u.bbox.left + u.bbox.width;
    const y = u.bbox.top + 6 * px;
    ctx.save();
    ctx.font = `${11 * px}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.fillStyle = ink.warning;
    let free = -Infinity; // where the last number ended: the next one must not touch it
    data.load.forEach((v, i) => {
      if (v == null || v <= most) return;
      const x = u.valToPos(data.at[i] / 1000, "x", true);
      if (x < u.bbox.left || x > right) return;
      ctx.beginPath(); ctx.moveTo(x, y - 5 * px); ctx.lineTo(x + 5 * px, y + 4 * px); ctx.lineTo(x - 5 * px, y + 4 * px); ctx.fill();
      const text = `${Math.round(v / 1000)}k`;
      const width = ctx.measureText(text).width;
      const at = x + 8 * px + width > right ? x - 8 * px - width : x + 8 * px;
      if (at > free) { ctx.fillText(text, at, y); free = at + width + 12 * px; }
    });
    ctx.restore();
  };
  // Shape and colour: a state is never colour alone.
  const shape = (ctx, tone, x, y, r) => {
    ctx.beginPath();
    if (tone === "critical") { ctx.moveTo(x, y - r); ctx.lineTo(x + r, y + r); ctx.lineTo(x - r, y + r); }
    else if (tone === "warning") { ctx.moveTo(x, y - r); ctx.lineTo(x + r, y); ctx.lineTo(x, y + r); ctx.lineTo(x - r, y); }
    else if (tone === "good") ctx.arc(x, y, r * 0.9, 0, 7);
    else ctx.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6);
    ctx.closePath();
    ctx.fill();
  };

  const markAt = (u) => {
    const { left, top } = u.cursor;
    if (left == null || left < 0) return null;
    const x = left + u.bbox.left / devicePixelRatio;
    const y = top + u.bbox.top / devicePixelRatio;
    return marks.findLast((m) => x >= m.x0 && x <= m.x1 && Math.abs(y - m.y) <= LANE / 2)?.mark || null;
  };
  const tell = (u) => {
    const mark = markAt(u);
    const i = u.cursor.idx;
    box.classList.toggle("on-mark", !!mark?.seq);
    if (mark) says.textContent = `${clock(mark.at / 1000)} · ${mark.says}${mark.seq ? " · click for the event" : ""}`;
    else if (i != null && data.load[i] != null) says.textContent = `${clock(data.at[i] / 1000)} · load ${data.measured[i] ? "" : "~"}${number(data.load[i])} (${data.source[i]}) · trigger ${number(data.trigger[i])} · budget ${number(data.budget[i])} · window ${number(data.window[i])}`;
    else says.textContent = REST;
  };

  // The stretch that is zoomed to is the one to review.
  const review = document.querySelector("[data-review]");
  const aimReview = (u) => {
    const { min, max } = u.scales.x;
    if (!review || min == null) return;
    review.search = u.zoomed ? `?since=${Math.floor(min * 1000)}&until=${Math.ceil(max * 1000)}` : "";
  };

  const options = () => ({
    width: box.clientWidth, height: HEIGHT, tzDate: (s) => uPlot.tzDate(new Date(s * 1000), "Etc/UTC"),
    padding: [8, 30, 0, 0], legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: 6 } },
    scales: { x: { time: true, range: (u, min, max) => (plot && plot.zoomed ? [min, max] : span()) }, y: { range: () => { const top = highest() * (numbers(data.load).some((v) => v > ceiling()) ? 1.2 : 1.06); return [-top * FOOT / (HEIGHT - 40 - FOOT), top]; } } },
    axes: [
      { stroke: ink.dim, grid: { stroke: ink.line, width: 1 }, ticks: { show: false }, size: 28, space: 84, incrs: STEPS, values: (u, list, axis, space, step) => list.map((s, i) => stamp(s, list[i - 1], step)) },
      { stroke: ink.dim, grid: { stroke: ink.line, width: 1 }, ticks: { show: false }, size: 82, splits: (u, a, min, max, step) => { const out = []; for (let v = 0; v <= max; v += step) out.push(v); return out; }, values: (u, list) => list.map((v) => (!known() ? "" : v >= 1000 ? `${Math.round(v / 1000)}k` : v)) },
    ],
    series: [
      {},
      { label: "load", stroke: ink.accent, width: 2, spanGaps: false, points: { show: data.at.length < 60, size: 4 } },
      { label: "estimate", stroke: ink.accent, width: 2, dash: [4, 4], spanGaps: false, points: { show: false } },
      { label: "trigger", stroke: ink.warning, width: 1.5, points: { show: false } },
      { label: "budget", stroke: ink.critical, width: 1.5, dash: [6, 4], points: { show: false } },
      { label: "window", stroke: ink.dim, width: 1, points: { show: false } },
    ],
    hooks: { draw: [drawLanes, drawBeyond], setScale: [aimReview], setCursor: [tell], setSelect: [(u) => { if (u.select.width > 0) u.zoomed = true; }] },
  });

  const build = () => {
    const zoom = plot && plot.zoomed ? { ...plot.scales.x } : null;
    plot?.destroy();
    readInk();
    plot = new uPlot(options(), columns(), box);
    if (zoom) plot.setScale("x", { min: zoom.min, max: zoom.max });
    plot.over.addEventListener("click", () => { const mark = markAt(plot); if (mark?.seq) location.assign(`${box.dataset.events}?at=${mark.seq}#e${mark.seq}`); });
    // Before uPlot's own handler, which then fits the axis anew.
    plot.root.addEventListener("dblclick", () => { plot.zoomed = false; }, true);
    plot.over.addEventListener("mouseleave", () => { says.textContent = REST; });
    const canvas = box.querySelector("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Load over time, ${data.at.length} readings; the table below holds the same data`);
  };
  // Marks alone still have a time axis: two moments with an unknown load hold it.
  const withoutReadings = () => {
    data.at = span().map((s) => s * 1000);
    for (const name of ["seq", "load", "trigger", "budget", "window"]) data[name] = [null, null];
    data.measured = [true, true];
    data.source = ["unknown", "unknown"];
  };
  const load = async () => {
    if (loading) { again = true; return; }
    loading = true;
    try {
      const answer = await fetch(box.dataset.series, { credentials: "same-origin", headers: { Accept: "application/json" } });
      if (!answer.ok) return;
      data = await answer.json();
      const marked = Object.values(data.lanes).some((lane) => lane.length);
      if (!data.at.length && !marked) { box.textContent = "Nothing to draw yet: it begins with the first request or compaction."; plot = null; return; }
      if (!data.at.length) withoutReadings();
      if (!plot) box.replaceChildren();
      if (plot && plot.zoomed) plot.setData(columns(), false);
      else if (plot) plot.setData(columns(), true);
      else { says.textContent = REST; build(); }
    } catch { /* the badge says that the server is away; the next change tries again */ } finally {
      loading = false;
      // At most one look in two seconds, however fast the chat moves.
      setTimeout(() => { if (again) { again = false; load(); } }, 2000);
    }
  };

  document.addEventListener("ctx:frame", (e) => { if (e.detail.type === "moved") load(); });
  let resizing = 0;
  new ResizeObserver(() => { cancelAnimationFrame(resizing); resizing = requestAnimationFrame(() => plot?.setSize({ width: box.clientWidth, height: HEIGHT })); }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (plot) build(); });
  load();
})();
