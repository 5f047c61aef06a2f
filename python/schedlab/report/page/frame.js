// SPDX-License-Identifier: MIT
// Opens the page that a report holds in a frame of its own.
//
// It is packed, so that the report is read first; the frame is filled when it comes into view. What it may
// not do, being made of a blob, is to compute a digest: it sends its records, and gets that.
"use strict";

for (const frame of document.querySelectorAll("iframe[data-address]")) {
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    inflate(document.getElementById("interactive").textContent).then((page) => {
      frame.src = `${URL.createObjectURL(new Blob([page], { type: "text/html" }))}#${frame.dataset.address}`;
    });
  }).observe(frame);
  addEventListener("message", async (event) => {
    if (event.source !== frame.contentWindow || !(event.data instanceof Uint8Array)) return;
    event.ports[0].postMessage(crypto.subtle ? await crypto.subtle.digest("SHA-256", event.data) : null);
  });
}
