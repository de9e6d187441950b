"use strict";
/* Incident pages: what is shown again every few seconds, links that copy, paper. */
(() => {
  const EVERY_MS = 5_000;
  const STALE_MS = 45_000;
  const pad = (n) => String(n).padStart(2, "0");
  const clock = (ms) => { const d = new Date(ms); return `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`; };

  // The badge: live while looks come back, stale since the last one that did.
  const badge = document.getElementById("polled");
  let heard = Date.now();
  const tell = () => {
    if (!badge) return;
    const stale = Date.now() - heard >= STALE_MS;
    const kind = `live ${stale ? "stale" : "on"}`;
    const text = stale ? `stale since ${clock(heard)}` : "live";
    const box = badge.querySelector("[data-live-text]");
    if (badge.className !== kind) badge.className = kind;
    if (box.textContent !== text) box.textContent = text;
  };

  // A region that names its own address is fetched again and morphed, unless somebody is in it.
  const region = () => document.querySelector("[data-poll]");
  const busy = (box) => box.contains(document.activeElement) || box.matches(":hover");
  let held = false;
  const look = async () => {
    const box = region();
    if (!box || document.hidden) return;
    try {
      const answer = await fetch(new URL(box.dataset.poll, location.href), { credentials: "same-origin", headers: { "HX-Request": "true" } });
      if (answer.status === 401) { location.reload(); return; }
      if (!answer.ok) return;
      heard = Date.now();
      const html = await answer.text();
      const box_now = region();
      if (!box_now) return;
      held = busy(box_now);
      if (held) return;
      const head = box_now.dataset.head;
      Idiomorph.morph(box_now, html.trim(), { morphStyle: "outerHTML" });
      titles(document);
      grown(head);
    } catch { /* the badge tells */ } finally { tell(); }
  };
  // The axis and the scrubber stay as they are while somebody looks: a link brings the rest.
  const grown = (head) => {
    const box = region();
    const axis = document.getElementById("axis");
    if (!box || !axis || !head || box.dataset.head === head) return;
    let note = document.getElementById("grown");
    if (!note) {
      note = document.createElement("p");
      note.id = "grown";
      note.className = "notice";
      note.setAttribute("role", "status");
      const link = document.createElement("a");
      link.href = location.pathname;
      link.textContent = "Show them";
      note.append(document.createElement("span"), " ", link);
      axis.querySelector(".card-head").after(note);
    }
    note.firstElementChild.textContent = `Newer events than the axis shows: up to ${box.dataset.head}.`;
  };
  const titles = (root) => { for (const t of root.querySelectorAll("time.at:not([title])")) t.title = `${t.dateTime}; here ${new Date(t.dateTime).toLocaleString()}`; };
  if (region()) { setInterval(look, EVERY_MS); document.addEventListener("visibilitychange", look); }
  setInterval(tell, 1_000);
  tell();

  // Copying and printing need a script: the buttons show where there is one.
  for (const button of document.querySelectorAll("[data-copy], [data-print]")) button.hidden = false;
  document.addEventListener("click", async (e) => {
    if (e.target.closest("[data-print]")) { window.print(); return; }
    const button = e.target.closest("[data-copy]");
    if (!button) return;
    const words = button.querySelector("[data-copied]");
    const url = new URL(button.dataset.copy, location.href);
    const at = new URL(location.href).searchParams.get("at");
    if (at) url.searchParams.set("at", at);
    try { await navigator.clipboard.writeText(url.href); } catch { prompt("The address of this page:", url.href); return; }
    const rest = words.textContent;
    words.textContent = words.dataset.copied;
    document.getElementById("say").textContent = words.dataset.copied;
    setTimeout(() => { words.textContent = rest; }, 2_000);
  });
})();
