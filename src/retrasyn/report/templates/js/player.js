// The time all pictures share: a slider, a button, a speed.

const player = { frame: 0, timer: null, followers: [] };

function follow(act) {
  player.followers.push(act);
  act(player.frame);
}

function goTo(frame) {
  const next = Math.min(Math.max(Math.round(frame), 0), nFrames - 1);
  if (next === player.frame) return;
  player.frame = next;
  showTime();
  for (const act of player.followers) act(next);
}

function showTime() {
  const slider = document.getElementById("slider");
  const first = firstTimestamp(player.frame);
  const clock = clockText(first);
  const text = frameText(player.frame);
  slider.value = player.frame;
  slider.setAttribute("aria-valuetext", clock ? `${clock}, ${text}` : text);
  document.getElementById("density-time").textContent = clock ? `${clock}, ${text}` : text;
  const now = document.getElementById("now");
  const zone = source.time.clock ? ` UTC${source.time.clock.zone.replace(/(\d\d)$/, ":$1")}` : "";
  now.replaceChildren(
    html("b", { text: clock || text }),
    html("span", { text: clock ? `${text}${zone}` : `of ${source.time.first + source.time.n - 1}` }),
  );
}

function pause() {
  clearInterval(player.timer);
  player.timer = null;
  const button = document.getElementById("play");
  button.setAttribute("aria-label", "Play");
  button.classList.remove("playing");
}

function play() {
  if (player.frame === nFrames - 1) goTo(0);
  const perSecond = Number(document.getElementById("speed").value);
  player.timer = setInterval(() => {
    if (player.frame === nFrames - 1) pause();
    else goTo(player.frame + 1);
  }, 1000 / perSecond);
  const button = document.getElementById("play");
  button.setAttribute("aria-label", "Pause");
  button.classList.add("playing");
}

function startPlayer() {
  const slider = document.getElementById("slider");
  slider.max = nFrames - 1;
  slider.disabled = nFrames === 1;
  document.getElementById("play").disabled = nFrames === 1;
  player.frame = busiestFrame();
  showTime();
  slider.addEventListener("input", () => goTo(Number(slider.value)));
  document.getElementById("play").addEventListener("click", () => (player.timer ? pause() : play()));
  document.getElementById("speed").addEventListener("change", () => {
    if (!player.timer) return;
    pause();
    play();
  });
}

// Where to begin: when most people are there, a picture has most to show.
function busiestFrame() {
  const active = source.curves.real;
  return active.reduce((best, n, frame) => (n > active[best] ? frame : best), 0);
}
