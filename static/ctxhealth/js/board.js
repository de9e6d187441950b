"use strict";
/* The board stays calm: rows change in place; they move, come and go only while nobody points
   at them. The server says the order; this script decides when it is good to follow. */
(() => {
  const LINE = /^<tr id="/;
  const BEFORE_LINE = /(?=<tr id="(?:row|group)-\d+")/;
  const body = document.getElementById("rows");
  const button = document.getElementById("resort");
  if (!body || !button) {
    // The page of no chats has no table to put the first one into.
    document.addEventListener("ctx:frame", (e) => { if (e.detail.type === "order" && e.detail.ids.length) location.reload(); });
    htmx.defineExtension("ctx-lines", { transformResponse: (html) => (LINE.test(html) ? "" : html) });
    return;
  }
  const text = button.querySelector("[data-resort-text]");
  const table = body.closest("table");
  const title = document.title;
  const rows = () => [...body.querySelectorAll("tr[id^=row-]")];
  const lines = () => [...body.querySelectorAll("tr[id^=row-], tr[id^=group-]")];
  const number = (row) => Number(row.id.slice(4));
  const arrived = new Map(); // lines that were sent but do not stand on the page yet, by id
  const left = new Set(); // rows that belong to this page no more
  const CALM_MS = 5_000;
  let followed = 0;
  let waiting = 0;
  let order = null;
  let heads = {}; // row -> the cause group whose line stands before it

  const busy = () => table.matches(":hover") || table.contains(document.activeElement) || !!document.querySelector("dialog[open]");

  // Ids of the lines in the server's order, each group's own line before its first row.
  const wanted = () => order.flatMap((id) => (heads[id] ? [`group-${heads[id]}`, `row-${id}`] : [`row-${id}`]));
  // Whether the order names every chat under these filters: then what it does not name leaves.
  const whole = !document.getElementById("more");
  const leaves = (line, named) => /^(row|group)-/.test(line.id) && !named.has(line.id) && (whole || line.id.startsWith("group-") || left.has(line.id));

  // How many of these places must move so that they ascend: all but the longest run that does.
  const outOfPlace = (places) => {
    const ends = [];
    for (const place of places) {
      const at = ends.findIndex((end) => end >= place);
      if (at < 0) ends.push(place); else ends[at] = place;
    }
    return places.length - ends.length;
  };
  // What following the order would change: lines to move, to bring in, to take away; ``urgent``
  // where one of them is critical.
  const changes = () => {
    if (!order) return { count: 0, urgent: false };
    const names = wanted();
    const place = new Map(names.map((id, i) => [id, i]));
    const standing = lines();
    const kept = standing.filter((line) => place.has(line.id));
    const fresh = names.filter((id) => arrived.has(id)).map((id) => arrived.get(id));
    const going = standing.filter((line) => leaves(line, place));
    const moved = outOfPlace(kept.filter((line) => line.id.startsWith("row-")).map((line) => place.get(line.id)));
    const grave = (line) => line.matches(".crit, .group");
    const urgent = [...fresh, ...going].some(grave) || outOfPlace(kept.filter(grave).map((line) => place.get(line.id))) > 0 || kept.some((line, i) => grave(line) && place.get(line.id) < i);
    return { count: moved + fresh.length + going.length, urgent };
  };

  // All lines at once: nothing is seen to travel.
  const follow = () => {
    if (!order) return;
    followed = Date.now();
    const focused = document.activeElement;
    const names = wanted();
    const named = new Set(names);
    const standing = new Map(lines().map((line) => [line.id, line]));
    const next = [];
    for (const id of names) {
      let line = standing.get(id);
      if (!line && arrived.has(id)) { line = arrived.get(id); arrived.delete(id); line.removeAttribute("hx-swap-oob"); htmx.process(line); }
      if (line) next.push(line);
    }
    const rest = [...body.children].filter((line) => !named.has(line.id) && !leaves(line, named));
    body.replaceChildren(...next, ...rest);
    left.clear();
    if (focused && document.contains(focused) && focused !== document.body) focused.focus({ preventScroll: true });
    show();
  };
  // While somebody points at the table it waits and says so; else what is critical is followed at
  // once, and the rest every few seconds: healthy chats trade places all the time.
  const look = (now = false) => {
    const { count, urgent } = changes();
    button.hidden = !count || !busy();
    if (!count) return;
    if (busy()) {
      const said = `${count} ${count === 1 ? "change" : "changes"}, resort`;
      if (text.textContent !== said) text.textContent = said;
      return;
    }
    const wait = now || urgent ? 0 : followed + CALM_MS - Date.now();
    if (wait <= 0) follow();
    else if (!waiting) waiting = setTimeout(() => { waiting = 0; look(); }, wait);
  };
  button.addEventListener("click", () => { follow(); button.hidden = true; });
  table.addEventListener("mouseleave", () => look(true));
  table.addEventListener("focusout", () => setTimeout(() => look(true)));

  // Lines that do not stand on the page yet are kept until the order is followed.
  const keep = (piece) => {
    const id = /^<tr id="((?:row|group)-\d+)"/.exec(piece)?.[1];
    if (!id || document.getElementById(id)) return false;
    const box = document.createElement("template");
    box.innerHTML = piece;
    arrived.set(id, box.content.firstElementChild);
    if (arrived.size > 500) arrived.delete(arrived.keys().next().value);
    return true;
  };
  htmx.defineExtension("ctx-lines", { transformResponse: (html) => (LINE.test(html) ? html.split(BEFORE_LINE).filter((piece) => !keep(piece)).join("") : html) });
  document.addEventListener("ctx:frame", (e) => { if (e.detail.type !== "order") return; order = e.detail.ids; heads = e.detail.heads || {}; for (const id of e.detail.gone) left.add(`row-${id}`); for (const id of order) left.delete(`row-${id}`); look(); });

  // The whole sentence of the row under the pointer or the focus.
  const peek = document.getElementById("peek");
  const tell = (row) => {
    const said = row?.matches(".crit, .warn") ? row.querySelector(".say") : null;
    peek.hidden = !said;
    if (!said) return;
    peek.firstElementChild.textContent = row.querySelector("td:nth-child(2) a").textContent;
    peek.lastElementChild.textContent = said.textContent;
  };
  const current = () => body.querySelector("tr:focus-within") || body.querySelector("tr:hover");
  for (const kind of ["mouseover", "focusin"]) body.addEventListener(kind, (e) => { const row = e.target.closest("tr"); if (row) tell(row); });
  for (const kind of ["mouseleave", "focusout"]) body.addEventListener(kind, () => setTimeout(() => tell(current())));

  // How many need somebody: in the tab's title and icon.
  const count = () => {
    const sum = (tone) => [...document.querySelectorAll(`#board-chips .chip.${tone} b`)].reduce((n, b) => n + Number(b.textContent.replace(/,/g, "")), 0);
    const critical = sum("critical");
    const said = critical ? `(${critical}) ${title}` : title;
    if (document.title !== said) document.title = said;
    document.dispatchEvent(new CustomEvent("ctx:tone", { detail: critical ? "critical" : sum("warning") ? "warning" : "base" }));
  };
  // A chat that turns critical is said at once, to those who do not see it happen.
  const critical = () => [...rows(), ...[...arrived.values()].filter((line) => line.id.startsWith("row-"))].filter((row) => row.matches(".crit"));
  let known = null; // what the page began with is read, not announced
  const announce = () => {
    const now = critical();
    const fresh = known ? now.filter((row) => !known.has(row.id)) : [];
    known = new Set(now.map((row) => row.id));
    if (!fresh.length) return;
    const named = fresh.slice(0, 3).map((row) => `${row.querySelector(".state").textContent.trim()}: ${row.querySelector("td:nth-child(2) a").textContent}`);
    document.getElementById("alarm").textContent = named.join("; ") + (fresh.length > 3 ? `; and ${fresh.length - 3} more` : "");
  };
  document.addEventListener("ctx:changed", () => { count(); announce(); look(); tell(current()); });

  // A further page begins where the first one ends by now, so the first is put right before.
  let end = null; // the cursor behind the first page, as long as that is all that stands here
  document.addEventListener("htmx:configRequest", (e) => {
    if (e.detail.elt.id !== "more") return;
    if (end) { follow(); e.detail.path = e.detail.path.replace(/([?&]cursor=)[^&]*/, (_, name) => name + encodeURIComponent(end)); }
    end = false;
  });
  document.addEventListener("ctx:frame", (e) => { if (e.detail.type === "order" && end !== false) end = e.detail.next; });

  // It brings the line of a group again that began on the page before it, or a row that moved.
  const onlyOnce = () => { const seen = new Set(); for (const line of body.querySelectorAll("tr[id^=group-], tr[id^=row-]")) { if (seen.has(line.id)) line.remove(); seen.add(line.id); } };
  // Which rows stand here, so that those beyond the first page are followed too.
  let told = "";
  const show = () => {
    const ids = rows().map(number);
    const said = [...ids].sort((a, b) => a - b).join();
    if (said === told) return;
    told = said;
    document.dispatchEvent(new CustomEvent("ctx:show", { detail: ids }));
  };
  document.addEventListener("ctx:open", () => { told = ""; show(); });
  let settling = 0;
  document.addEventListener("htmx:afterSettle", (e) => { if (!table.contains(e.target)) return; clearTimeout(settling); settling = setTimeout(() => { onlyOnce(); show(); }, 50); });
  count();
  tell(current());
})();
