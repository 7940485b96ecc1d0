// Everything set in motion, and the choice of light or dark.

function repaint() {
  const button = document.getElementById("theme");
  button.setAttribute("aria-pressed", String(isDark()));
  paintMaps();
  paintFineMaps();
  drawTracks();
}

function startTheme() {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    repaint();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  let before;
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    repaint();
  });
  addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    repaint();
  });
}

startPlayer();
startMaps();
startFine();
startFlows();
startCurves();
startHotspots();
startPatterns();
startTrips();
startTracks();
startTheme();
repaint();
