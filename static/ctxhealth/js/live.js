"use strict";
/* What the pages need of a script: the live badge, ages, dialogs, errors said aloud.
   No data is made here; every number comes from the server. */
(() => {
  const STALE_MS = 45_000;
  const LATE_MS = 60_000; // as the pages' first render has it
  const RECONNECT_MS = 5_000;
  const DEAD_MS = 35_000; // more than two of the server's ticks
  const DIAL_MS = 15_000;
  const byId = (id) => document.getElementById(id);
  const say = (text, alarm) => { const box = byId(alarm ? "alarm" : "say"); if (box) box.textContent = text; };
  const pad = (n) => String(n).padStart(2, "0");
  const clock = (ms) => { const d = new Date(ms); return `${pad(d.getUTCHours())}:${pad(d.getUTCMinutes())}:${pad(d.getUTCSeconds())}`; };

  // Ages, by the server's clock: an operator's own may be wrong.
  let skew = 0;
  const now = () => Date.now() + skew;
  const age = (ms) => {
    const s = Math.max(0, Math.floor((now() - ms) / 1000));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min`;
    if (s < 172800) return `${Math.floor(s / 3600)} h`;
    return `${Math.floor(s / 86400)} d`;
  };
  const tellAges = (root) => {
    for (const t of root.querySelectorAll("time[datetime]:not(.at)")) {
      const text = age(Date.parse(t.dateTime));
      if (t.textContent !== text) t.textContent = text;
      if (t.classList.contains("wait")) t.classList.toggle("late", now() - Date.parse(t.dateTime) >= LATE_MS);
    }
  };
  const localTimes = (root) => {
    for (const t of root.querySelectorAll("time.at:not([title])")) t.title = `${t.dateTime} UTC; here ${new Date(t.dateTime).toLocaleString()}`;
  };

  // The badge: live, or stale since when.
  const badge = byId("live");
  let heard = 0;
  let opened = false;
  let socket = null;
  let retry = 0;
  const show = (kind, text) => {
    if (!badge) return;
    const box = badge.querySelector("[data-live-text]");
    const was = badge.className;
    badge.className = `live ${kind}`;
    if (box.textContent !== text) box.textContent = text;
    document.documentElement.dataset.live = kind;
    if (was !== badge.className && kind === "stale") say("Live updates stopped.", true);
    if (was === "live stale" && kind === "on") say("Live again.");
    paintIcon();
  };
  const lookAtBadge = () => {
    if (!badge) return;
    const since = heard || started;
    if (opened && Date.now() - heard < STALE_MS) show("on", "live");
    else if (heard || Date.now() - started > 8000) show("stale", `stale since ${clock(since + skew)}`);
  };
  const started = Date.now();
  const hear = () => { heard = Date.now(); lookAtBadge(); };

  // A socket may die in silence (a laptop slept, a network changed): nothing closes it, nothing
  // comes. Then a new one is opened, and the old one's end is nobody's business any more.
  let raw = null;
  let dialled = 0;
  htmx.createWebSocket = (url) => {
    dialled = Date.now();
    raw = new WebSocket(url, []);
    raw.binaryType = htmx.config.wsBinaryType;
    return raw;
  };
  const lookAtSocket = () => {
    if (!raw || !socket) return;
    const dead = raw.readyState === WebSocket.OPEN && Date.now() - Math.max(heard, dialled) > DEAD_MS;
    const lost = raw.readyState === WebSocket.CONNECTING && Date.now() - dialled > DIAL_MS;
    if (!dead && !lost) return;
    raw.onclose = raw.onerror = null;
    raw.close();
    opened = false;
    lookAtBadge();
    socket.reconnect();
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { lookAtBadge(); lookAtSocket(); } });

  document.addEventListener("htmx:wsOpen", (e) => { opened = true; retry = 0; socket = e.detail.socketWrapper; hear(); shown(); });
  document.addEventListener("htmx:wsClose", (e) => {
    opened = false;
    socket = e.detail.socketWrapper || socket;
    lookAtBadge();
    const code = e.detail.event.code;
    if (code === 4401) { location.reload(); return; }
    // 1006, 1011, 1012 and 1013 the extension reconnects by itself; other endings are ours.
    if ([1006, 1011, 1012, 1013].includes(code) || code === 4403 || code === 4404 || code === 4400) return;
    clearTimeout(retry);
    retry = setTimeout(() => socket && socket.reconnect(), RECONNECT_MS * (0.5 + Math.random()));
  });
  window.addEventListener("online", () => { if (!opened && socket) socket.reconnect(); });

  // How many incidents are open, beside the link to them.
  const tellIncidents = (open) => {
    const box = byId("open-incidents");
    if (!box || open == null) return;
    box.hidden = !open;
    box.firstElementChild.textContent = open.toLocaleString("en-US");
  };

  // JSON frames are for scripts; everything else is a fragment.
  document.addEventListener("htmx:wsBeforeMessage", (e) => {
    hear();
    const text = e.detail.message;
    if (typeof text !== "string" || text[0] !== "{") return;
    e.preventDefault();
    let frame;
    try { frame = JSON.parse(text); } catch { return; }
    if (frame.type === "tick") { skew = frame.now - Date.now(); tellAges(document); tellIncidents(frame.incidents); }
    document.dispatchEvent(new CustomEvent("ctx:frame", { detail: frame }));
  });
  document.addEventListener("htmx:wsAfterMessage", () => {
    tellAges(document);
    localTimes(document);
    document.dispatchEvent(new CustomEvent("ctx:changed"));
  });
  const shown = () => document.dispatchEvent(new CustomEvent("ctx:open"));
  document.addEventListener("ctx:show", (e) => { if (opened && socket) socket.sendImmediately(JSON.stringify({ show: e.detail })); });

  // Worst state in the tab's icon.
  let tone = "base";
  const paintIcon = () => {
    const link = byId("favicon");
    if (!link) return;
    const stale = badge && badge.classList.contains("stale");
    const href = link.dataset[stale ? "stale" : tone];
    if (href && link.getAttribute("href") !== href) link.setAttribute("href", href);
  };
  document.addEventListener("ctx:tone", (e) => { tone = e.detail; paintIcon(); });
  const headline = document.querySelector("[data-tone]");
  if (headline) { tone = { critical: "critical", warning: "warning" }[headline.dataset.tone] || "base"; paintIcon(); }

  // A headline that turns critical is said at once, other changes politely.
  let lastHeadline = document.querySelector("[data-headline]")?.textContent;
  document.addEventListener("ctx:changed", () => {
    const box = document.querySelector("[data-headline]");
    if (!box || box.textContent === lastHeadline) return;
    lastHeadline = box.textContent;
    const now_tone = box.closest("[data-tone]").dataset.tone;
    tone = { critical: "critical", warning: "warning" }[now_tone] || "base";
    paintIcon();
    say(lastHeadline, now_tone === "critical");
  });

  // Morphing must not close what the reader opened, nor touch what is being typed.
  if (window.Idiomorph) {
    Idiomorph.defaults.ignoreActiveValue = true;
    Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) =>
      !((name === "open" && node.tagName === "DETAILS") || (name === "title" && node.tagName === "TIME"));
    Idiomorph.defaults.callbacks.beforeNodeMorphed = (node, fresh) => {
      // What a reader loaded into an opened row stays.
      if (node.nodeType === 1 && node.classList.contains("raw-box") && node.querySelector("pre, .loaded")) return false;
      // An age that is already right is not rewritten: nothing flickers.
      if (node.nodeType === 1 && node.tagName === "TIME" && !node.classList.contains("at") && node.dateTime === fresh.dateTime) return false;
      return true;
    };
  }

  // Dialogs: opened by links, filled by the server, never acting by themselves.
  const dialog = byId("dialog");
  let opener = null;
  const openDialog = (href, from) => {
    opener = from;
    htmx.ajax("GET", href, { target: "#dialog-body", swap: "innerHTML" }).then(() => {
      if (!dialog.open) dialog.showModal();
      const first = dialog.querySelector("[name=reason]") || dialog.querySelector("[data-close]");
      if (first) first.focus();
    }, () => { /* said in the page */ });
  };
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[data-dialog]");
    if (link && !e.ctrlKey && !e.metaKey && !e.shiftKey && e.button === 0) { e.preventDefault(); openDialog(new URL(link.getAttribute("href"), document.querySelector("#dialog[open] form")?.action || location).href, link); return; }
    if (e.target.closest("[data-close]")) { dialog.close(); return; }
    const open = e.target.closest("[data-open]");
    if (open) { document.querySelector(open.dataset.open).showModal(); return; }
    if (e.target === dialog || e.target.id === "help") e.target.close();
  });
  dialog?.addEventListener("close", () => { byId("dialog-body").replaceChildren(); const back = opener?.isConnected ? opener : opener && document.querySelector(`a[data-dialog][href="${CSS.escape(opener.getAttribute("href"))}"]`); back?.focus(); });
  window.ctxOpenDialog = openDialog;

  // Selects of a filter form apply at once.
  document.addEventListener("change", (e) => { const form = e.target.closest("form[data-autosubmit]"); if (form && e.target.tagName === "SELECT") form.requestSubmit(); });
  document.addEventListener("submit", (e) => { for (const field of e.target.matches?.("form[data-autosubmit]") ? e.target.elements : []) if (!field.value) field.disabled = true; });
  window.addEventListener("pageshow", () => { for (const f of document.querySelectorAll("form[data-autosubmit] :disabled")) f.disabled = false; });

  // What went wrong is said, so that nobody believes a button worked.
  const trouble = (text) => { const box = byId("trouble"); box.textContent = text; box.hidden = !text; const dlg = dialog?.open && byId("dialog-body"); if (dlg && text) { let p = dlg.querySelector("[data-trouble]"); if (!p) { p = document.createElement("p"); p.dataset.trouble = ""; p.className = "notice error"; p.setAttribute("role", "alert"); dlg.prepend(p); } p.textContent = text; } };
  const said = (xhr) => new DOMParser().parseFromString(xhr.responseText || "", "text/html").querySelector("main section p")?.textContent.trim();
  document.addEventListener("htmx:responseError", (e) => trouble(said(e.detail.xhr) || `The server answered ${e.detail.xhr.status}: this did not happen. Reload the page and try again.`));
  document.addEventListener("htmx:sendError", () => trouble("The server cannot be reached: nothing was sent."));
  document.addEventListener("htmx:timeout", () => trouble("The server did not answer in time: whether it happened is not known. Look at the commands."));
  document.addEventListener("htmx:afterRequest", (e) => { if (e.detail.successful) trouble(""); });
  document.addEventListener("htmx:afterSettle", (e) => { tellAges(e.target); localTimes(e.target); });

  // Read-out of the structure: what has the focus or the pointer.
  const readout = (cell) => { const box = cell.closest("section").querySelector("[data-readout]"); if (!box) return; if (!box.dataset.rest) box.dataset.rest = box.textContent; box.textContent = cell.getAttribute("aria-label"); };
  for (const kind of ["focusin", "mouseover"]) document.addEventListener(kind, (e) => { const cell = e.target.closest?.(".icicle .cell"); if (cell) readout(cell); });
  document.addEventListener("mouseout", (e) => { const icicle = e.target.closest?.(".icicle"); if (!icicle || icicle.contains(e.relatedTarget)) return; const box = icicle.closest("section").querySelector("[data-readout]"); if (box?.dataset.rest) box.textContent = box.dataset.rest; });

  setInterval(() => { tellAges(document); lookAtBadge(); lookAtSocket(); }, 1000);
  localTimes(document);
  lookAtBadge();
})();
