"use strict";
/* The scrubber: any moment of a review. The server renders it; this script asks for the newest
   wish only, moves the line at once and corrects it to the event that the answer names. */
(() => {
  const axis = document.getElementById("axis");
  const slider = document.getElementById("scrub");
  const drawing = axis?.querySelector("svg.axis");
  if (!axis || !slider || !drawing) return;
  const first = Number(axis.dataset.first);
  const last = Number(axis.dataset.last);
  const cursor = drawing.querySelector("[data-cursor]");
  const steps = document.getElementById("steps");
  const moment = () => document.getElementById("moment");
  const seqNow = () => Number(moment().dataset.seq);
  // Marks in the order of the log: [event, ms].
  const marks = [...new Map([...drawing.querySelectorAll("a[data-seq]")].map((a) => [Number(a.dataset.seq), Number(a.dataset.at)]))].sort((a, b) => a[0] - b[0]);
  slider.hidden = false;
  document.getElementById("scrub-keys").hidden = false;

  const show = (at) => {
    const x = `${(100 * (at - first)) / (last - first)}%`;
    cursor.setAttribute("x1", x);
    cursor.setAttribute("x2", x);
    slider.value = at;
  };

  // One request at a time carries the newest wish; an older answer never overtakes it.
  let asked = null;
  let going = null;
  const ask = (wish) => { asked = wish; if (!going) go(); else if (wish.seq != null || Date.now() - going.since > 1000) going.abort.abort(); };
  const go = async () => {
    const wish = asked;
    asked = null;
    going = { abort: new AbortController(), since: Date.now() };
    const url = new URL(axis.dataset.moment, location.href);
    if (wish.seq != null) url.searchParams.set("at", wish.seq);
    else url.searchParams.set("t", Math.round(wish.t));
    try {
      const answer = await fetch(url, { credentials: "same-origin", headers: { "HX-Request": "true" }, signal: going.abort.signal });
      if (answer.status === 401) { location.reload(); return; }
      if (answer.ok) { away(false); take(await answer.text(), wish); } else away(true);
    } catch (error) {
      // A newer wish took its place, or nobody answers: the moment shown is an older one then.
      if (error.name !== "AbortError") away(true);
    } finally {
      going = null;
      if (asked) go();
    }
  };
  const away = (yes) => {
    const box = document.getElementById("trouble");
    if (!yes && box.hidden) return;
    box.textContent = yes ? "The server did not answer: the moment shown is the last that came." : "";
    box.hidden = !yes;
  };
  const take = (html, wish) => {
    Idiomorph.morph(moment(), html.trim(), { morphStyle: "outerHTML" });
    const found = moment();
    slider.setAttribute("aria-valuetext", found.dataset.says);
    // While a hand drags, the line stays under it; it comes to rest on the event.
    if (!dragging && !asked) show(Number(found.dataset.at));
    for (const t of found.querySelectorAll("time.at:not([title])")) t.title = `${t.dateTime}; here ${new Date(t.dateTime).toLocaleString()}`;
    tellSteps();
    if (wish.keep !== false) keep();
  };
  let keeping = 0;
  const keep = () => {
    clearTimeout(keeping);
    keeping = setTimeout(() => { const url = new URL(location.href); url.searchParams.set("at", seqNow()); history.replaceState(null, "", url); }, 300);
  };

  const low = Number(axis.dataset.from);
  const high = Number(axis.dataset.to);
  const stepTo = (name) => {
    const seq = seqNow();
    switch (name) {
      case "first": return seq > low ? low : null;
      case "last": return seq < high ? high : null;
      case "before": return seq > low ? seq - 1 : null;
      case "after": return seq < high ? seq + 1 : null;
      case "mark-before": return marks.findLast(([m]) => m < seq && m >= low)?.[0] ?? null;
      case "mark-after": return marks.find(([m]) => m > seq && m <= high)?.[0] ?? null;
    }
    return null;
  };
  const tellSteps = () => {
    for (const link of steps.querySelectorAll("[data-step]")) {
      const to = stepTo(link.dataset.step);
      link.classList.toggle("off", to == null);
      if (to == null) { link.removeAttribute("href"); link.setAttribute("role", "link"); link.setAttribute("aria-disabled", "true"); continue; }
      const url = new URL(location.href);
      url.searchParams.set("at", to);
      url.hash = "moment";
      link.href = `${url.search}${url.hash}`;
      link.removeAttribute("role");
      link.removeAttribute("aria-disabled");
    }
  };
  const step = (name) => {
    const to = stepTo(name);
    if (to == null) return;
    const known = marks.find(([m]) => m === to);
    if (known) show(known[1]);
    ask({ seq: to });
  };
  steps.addEventListener("click", (e) => {
    const link = e.target.closest("[data-step]");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    step(link.dataset.step);
  });
  const KEYS = { ArrowLeft: "before", ArrowDown: "before", ArrowRight: "after", ArrowUp: "after", PageDown: "mark-after", PageUp: "mark-before", Home: "first", End: "last" };
  slider.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !KEYS[e.key]) return;
    e.preventDefault();
    step(KEYS[e.key]);
  });

  // Dragging: on the slider, or anywhere on the drawing.
  let dragging = false;
  slider.addEventListener("input", () => { dragging = true; const at = Number(slider.value); show(at); ask({ t: at }); });
  slider.addEventListener("change", () => { dragging = false; ask({ t: Number(slider.value) }); });
  const place = (e) => {
    const box = drawing.getBoundingClientRect();
    return first + (last - first) * Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
  };
  let down = null;
  drawing.addEventListener("pointerdown", (e) => { if (e.button === 0) { down = { x: e.clientX, id: e.pointerId }; } });
  drawing.addEventListener("pointermove", (e) => {
    if (!down || e.pointerId !== down.id) return;
    if (!dragging && Math.abs(e.clientX - down.x) < 4) return;
    if (!dragging) { dragging = true; drawing.setPointerCapture(e.pointerId); }
    const at = place(e);
    show(at);
    ask({ t: at });
  });
  let dragged = 0;
  drawing.addEventListener("pointerup", (e) => {
    if (!down) return;
    down = null;
    if (dragging) { dragging = false; dragged = Date.now(); ask({ t: place(e) }); return; }
    if (e.target.closest("a[data-seq]")) return;
    show(place(e));
    ask({ t: place(e) });
  });
  drawing.addEventListener("pointercancel", () => { down = null; dragging = false; });
  drawing.addEventListener("click", (e) => {
    const mark = e.target.closest("a[data-seq]");
    if (!mark || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    if (Date.now() - dragged < 200) return;
    show(Number(mark.dataset.at));
    ask({ seq: Number(mark.dataset.seq) });
  });
  drawing.addEventListener("dragstart", (e) => e.preventDefault());
  // A link to a moment anywhere on the page moves the scrubber, not the page.
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[data-moment-seq]");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
    e.preventDefault();
    if (link.dataset.momentAt) show(Number(link.dataset.momentAt));
    ask({ seq: Number(link.dataset.momentSeq) });
    axis.scrollIntoView({ block: "nearest" });
  });
  tellSteps();
})();
