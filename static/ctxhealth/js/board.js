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
  const number = (row) => Number(row.id.slice(4));
  const arrived = new Map(); // rows that were sent but do not stand on the page yet
  let order = null;

  const busy = () => table.matches(":hover") || table.contains(document.activeElement) || !!document.querySelector("dialog[open]");

  // What following the order would change: rows to move, to bring in, to take away.
  const changes = () => {
    if (!order) return 0;
    const standing = rows().map(number);
    const wanted = new Set(order);
    const kept = standing.filter((id) => wanted.has(id));
    const place = new Map(order.filter((id) => kept.includes(id)).map((id, i) => [id, i]));
    const moved = kept.filter((id, i) => place.get(id) !== i).length;
    const fresh = order.filter((id) => arrived.has(id)).length;
    const gone = whole() ? standing.length - kept.length : 0;
    return moved + fresh + gone;
  };
  // Whether the order names every chat under these filters.
  const whole = () => !document.getElementById("more");

  const follow = () => {
    if (!order) return;
    const focused = document.activeElement;
    const standing = new Map(rows().map((row) => [number(row), row]));
    let anchor = body.firstChild;
    for (const id of order) {
      let row = standing.get(id);
      if (!row && arrived.has(id)) { row = arrived.get(id); arrived.delete(id); row.removeAttribute("hx-swap-oob"); htmx.process(row); }
      if (!row) continue;
      standing.delete(id);
      if (row === anchor) anchor = anchor.nextSibling;
      else body.insertBefore(row, anchor);
    }
    if (whole()) for (const row of standing.values()) row.remove();
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
    if (row && /^row-\d+$/.test(row.id)) arrived.set(number(row), row.cloneNode(true));
    if (arrived.size > 500) arrived.delete(arrived.keys().next().value);
  });
  document.addEventListener("ctx:frame", (e) => { if (e.detail.type === "order") { order = e.detail.ids; look(); } });

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
