"use strict";
/* The board stays calm: rows change in place; they move, come and go only while nobody points
   at them. The server says the order; this script decides when it is good to follow. */
(() => {
  const body = document.getElementById("rows");
  const button = document.getElementById("resort");
  if (!body || !button) {
    // The page of no chats has no table to put the first one into.
    document.addEventListener("ctx:frame", (e) => { if (e.detail.type === "order" && e.detail.ids.length) location.reload(); });
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
  let order = null;
  let heads = {}; // row -> the cause group whose line stands before it

  const busy = () => table.matches(":hover") || table.contains(document.activeElement) || !!document.querySelector("dialog[open]");

  // Ids of the lines in the server's order, each group's own line before its first row.
  const wanted = () => order.flatMap((id) => (heads[id] ? [`group-${heads[id]}`, `row-${id}`] : [`row-${id}`]));
  // Whether the order names every chat under these filters.
  const whole = () => !document.getElementById("more");
  const leaves = (line, named) => !named.has(line.id) && (whole() || line.id.startsWith("group-") || left.has(line.id));

  // What following the order would change: lines to move, to bring in, to take away.
  const changes = () => {
    if (!order) return 0;
    const names = wanted();
    const named = new Set(names);
    const standing = lines();
    const kept = standing.filter((line) => named.has(line.id)).map((line) => line.id);
    const here = new Set(kept);
    const inOrder = names.filter((id) => here.has(id));
    const moved = kept.filter((id, i) => inOrder[i] !== id && id.startsWith("row-")).length;
    const fresh = names.filter((id) => arrived.has(id)).length;
    return moved + fresh + standing.filter((line) => leaves(line, named)).length;
  };

  const follow = () => {
    if (!order) return;
    const focused = document.activeElement;
    const names = wanted();
    const named = new Set(names);
    const standing = new Map(lines().map((line) => [line.id, line]));
    let anchor = body.firstChild;
    for (const id of names) {
      let line = standing.get(id);
      if (!line && arrived.has(id)) { line = arrived.get(id); arrived.delete(id); line.removeAttribute("hx-swap-oob"); htmx.process(line); }
      if (!line) continue;
      if (line === anchor) anchor = anchor.nextSibling;
      else body.insertBefore(line, anchor);
    }
    for (const line of standing.values()) if (leaves(line, named)) line.remove();
    left.clear();
    if (focused && document.contains(focused) && focused !== document.body) focused.focus({ preventScroll: true });
    show();
  };
  const look = () => {
    const count = changes();
    if (count && !busy()) { follow(); button.hidden = true; return; }
    button.hidden = !count;
    const said = `${count} ${count === 1 ? "change" : "changes"}, resort`;
    if (count && text.textContent !== said) text.textContent = said;
  };
  button.addEventListener("click", () => { follow(); button.hidden = true; });
  table.addEventListener("mouseleave", look);
  table.addEventListener("focusout", () => setTimeout(look));

  document.addEventListener("htmx:oobErrorNoTarget", (e) => {
    const row = e.detail.content;
    if (row && /^(row|group)-\d+$/.test(row.id)) arrived.set(row.id, row.cloneNode(true));
    if (arrived.size > 500) arrived.delete(arrived.keys().next().value);
  });
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
  document.addEventListener("ctx:changed", () => { count(); look(); tell(current()); });

  const show = () => document.dispatchEvent(new CustomEvent("ctx:show", { detail: rows().map(number) }));
  document.addEventListener("ctx:open", show);
  document.addEventListener("htmx:afterSettle", (e) => { if (e.target.id?.startsWith("row-") || e.target === body) return; if (table.contains(e.target)) show(); });
  count();
  tell(current());
})();
