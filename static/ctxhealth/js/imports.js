"use strict";
/* Files dropped on the Import page: what is plainly too much is said before it is sent. */
(() => {
  const form = document.getElementById("bring");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const zone = form.querySelector("[data-drop]");
  const box = form.querySelector("[data-bring-trouble]");
  const sending = form.querySelector("[data-sending]");
  const bar = sending.querySelector("progress");
  const sent = sending.querySelector("[data-sent]");
  const mb = (bytes) => `${(bytes / 1e6).toLocaleString("en", { maximumFractionDigits: 1 })} MB`;
  const trouble = (text) => { box.textContent = text; box.hidden = !text; };

  const wrong = () => {
    const files = [...input.files];
    const most = Number(form.dataset.most);
    if (!files.length) return "No file was chosen.";
    if (files.length > Number(form.dataset.files)) return `One drop takes ${form.dataset.files} files, these are ${files.length}.`;
    const large = files.find((file) => file.size > most);
    if (large) return `${large.name} has ${mb(large.size)}, the limit here is ${mb(most)}.`;
    const total = files.reduce((sum, file) => sum + file.size, 0);
    return total > 2 * most ? `These files have ${mb(total)}, one drop takes ${mb(2 * most)}.` : "";
  };
  form.addEventListener("htmx:confirm", (e) => { const text = wrong(); trouble(text); if (text) e.preventDefault(); });

  // The whole page takes a drop: a file that misses the box must not replace the page.
  let inside = 0;
  const holds = (e) => e.dataTransfer && [...e.dataTransfer.types].includes("Files");
  document.addEventListener("dragenter", (e) => { if (holds(e)) { e.preventDefault(); inside += 1; zone.classList.add("over"); } });
  document.addEventListener("dragleave", (e) => { if (holds(e) && --inside <= 0) { inside = 0; zone.classList.remove("over"); } });
  document.addEventListener("dragover", (e) => { if (holds(e)) { e.preventDefault(); e.dataTransfer.dropEffect = "copy"; } });
  document.addEventListener("drop", (e) => {
    if (!holds(e)) return;
    e.preventDefault();
    inside = 0;
    zone.classList.remove("over");
    const folder = [...e.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).find((entry) => entry?.isDirectory);
    if (folder) { trouble(`${folder.name} is a folder: drop the files in it.`); return; }
    input.files = e.dataTransfer.files;
    form.requestSubmit();
  });

  form.addEventListener("htmx:beforeRequest", (e) => { if (e.detail.elt !== form) return; sending.hidden = false; bar.value = 0; sent.textContent = "Sending…"; });
  form.addEventListener("htmx:xhr:progress", (e) => {
    if (!e.detail.lengthComputable) return;
    bar.value = (100 * e.detail.loaded) / e.detail.total;
    sent.textContent = e.detail.loaded < e.detail.total ? `${mb(e.detail.loaded)} of ${mb(e.detail.total)} sent` : "Sent; the server takes it on…";
  });
  document.addEventListener("htmx:afterRequest", (e) => {
    if (e.detail.elt !== form) return;
    sending.hidden = true;
    if (e.detail.successful) { form.reset(); document.getElementById("say").textContent = "The files arrived and are being read."; }
  });
})();
