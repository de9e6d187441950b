"use strict";
/* The chat's newest events: fetched as the log grows, unless somebody is reading there. */
(() => {
  const list = document.querySelector("#events .events");
  const url = document.getElementById("timeline")?.dataset.events;
  if (!list || !url) return;
  const MAX = 200; // rows kept on the page
  let wanted = false;
  let busy = false;
  const newest = () => Number(list.querySelector(".ev")?.id.slice(1) || 0);
  const reading = () => list.matches(":hover") || list.contains(document.activeElement);
  const fetchNew = async () => {
    if (busy || !wanted || reading()) return;
    busy = true;
    wanted = false;
    try {
      await htmx.ajax("GET", `${url}?after=${newest()}`, { target: list, swap: "afterbegin" });
      // With the blanks between the rows: a page that stays open must not gather them.
      const last = list.querySelectorAll(".ev")[MAX - 1];
      while (last?.nextSibling) last.nextSibling.remove();
    } catch { /* what failed is said in the page; the next change tries again */ } finally { setTimeout(() => { busy = false; fetchNew(); }, 1000); }
  };
  document.addEventListener("ctx:frame", (e) => { if (e.detail.type === "moved" && e.detail.chat_seq > newest()) { wanted = true; fetchNew(); } });
  list.addEventListener("mouseleave", () => fetchNew());
})();
