"use strict";
/* The page looks again by itself, but not under the hands of somebody who fills in a form. */
document.addEventListener("htmx:beforeRequest", (e) => {
  const box = e.detail.elt;
  if (box.id === "oncall-now" && box.querySelector("details[open], :focus")) e.preventDefault();
});
