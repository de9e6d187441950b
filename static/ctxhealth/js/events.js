"use strict";
/* The event that the address names is marked and brought into view. */
(() => {
  const at = document.querySelector("[data-at]")?.dataset.at;
  const row = at && document.getElementById(`e${at}`);
  if (row) { row.classList.add("here"); row.open = true; row.scrollIntoView({ block: "center" }); }
})();
