"use strict";
/* Every task from the keyboard. Letters open and move; none of them acts on an agent. */
(() => {
  const rows = () => [...document.querySelectorAll("#rows tr:not(.more) td:nth-child(2) a, .ev > summary")];
  const here = () => document.activeElement?.closest("tr, .ev");
  const move = (step) => {
    const links = rows();
    if (!links.length) return;
    const at = links.findIndex((link) => link.closest("tr, .ev") === here());
    const next = links[at < 0 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step))];
    next.focus();
    next.closest("tr, .ev").scrollIntoView({ block: "nearest" });
  };
  const act = (key) => {
    const scope = here() || document;
    const button = scope.querySelector(`[data-key="${key}"]`);
    if (!button) return;
    if (button.tagName === "A") window.ctxOpenDialog(button.href, button);
    else button.focus();
  };
  let going = 0;
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    const typing = e.target.matches("input, textarea, select, [contenteditable]");
    if (typing) { if (e.key === "Escape") e.target.blur(); return; }
    if (e.key === " " && e.target.matches("a[role=button]")) { e.preventDefault(); e.target.click(); return; }
    if (document.querySelector("dialog[open]")) return;
    if (going && Date.now() - going < 1500) {
      going = 0;
      const to = { c: "/", i: "/incidents/", a: "/agents/", o: "/oncall/", m: "/import/" }[e.key];
      if (to) { e.preventDefault(); location.assign(to); }
      return;
    }
    switch (e.key) {
      case "/": { const box = document.getElementById("q"); if (box) { e.preventDefault(); box.focus(); box.select(); } break; }
      case "j": case "k": e.preventDefault(); move(e.key === "j" ? 1 : -1); break;
      case "f": case "c": e.preventDefault(); act(e.key); break;
      case "g": going = Date.now(); break;
      case "r": document.getElementById("resort")?.click(); break;
      case "?": e.preventDefault(); document.getElementById("help").showModal(); break;
    }
  });
})();
