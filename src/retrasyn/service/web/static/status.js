"use strict";
// Numbers are refreshed from /v1/status. What stands behind # never leaves the browser.
const word = (name, value) => {
  if (name === "reason") return value || "ready";
  return value === null || value === undefined ? "none" : value.toLocaleString("en");
};
const show = (status) => {
  for (const place of document.querySelectorAll("[data-name]")) {
    place.textContent = word(place.dataset.name, status[place.dataset.name]);
  }
};
const refresh = async () => {
  let fresh = false;
  try {
    const answer = await fetch("v1/status", { cache: "no-store" });
    fresh = answer.ok;
    if (fresh) show(await answer.json());
  } catch {
    fresh = false;
  }
  document.getElementById("stale").hidden = fresh;
};
if (location.hash.startsWith("#enrol=")) {
  document.getElementById("link").textContent = location.href;
  document.getElementById("invitation").hidden = false;
}
setInterval(refresh, 5000);
