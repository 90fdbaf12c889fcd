// The room Learn: start a training, and show its events as they come; the page only ever asks what is new.
import { ask, draw, element, number, say, state } from "./room.js";
import { underlined } from "./expression.js";

const find = (id) => document.getElementById(id);
const field = underlined(find("expression"), find("message"));
const boxes = [...document.querySelectorAll("input[name=network]")];
const words = Object.fromEntries(boxes.map((box) => [box.value, box.parentElement.textContent.trim()]));
const LOOK = 400; // milliseconds between two questions
const STATES = {
  ended: "Done; what was found is in the store.",
  stopped: "Stopped; what was finished is in the store.",
  failed: "The training failed; where genscope serve runs it is told why.",
  "out of time": "The training took ten minutes and was ended; what was finished is in the store. genscope learn goes on.",
  "too long": "The training had more to tell than a page can show, and was ended. genscope learn goes on.",
};

let seen = { number: 0, next: 0 }; // what this page knows of the training
let found = empty();

function empty() { return { runs: new Map(), curves: [] }; }

const chosen = () => boxes.filter((box) => box.checked).map((box) => box.value);

function wanted(kind) {
  return { kind, expression: field.text(), networks: chosen(),
    context_length: find("length").valueAsNumber, sample_size: find("sample").valueAsNumber };
}

function remember() {
  const { expression, networks, context_length, sample_size } = wanted("run");
  state.write({ expression, networks: networks.join(","), length: context_length || "", sample: sample_size || "" });
  const shown = `'${expression.replaceAll("'", "'\\''")}'`;
  find("command").textContent = `genscope learn ${shown} --context-length ${context_length || "T"} `
    + `--network ${networks.join(",") || "NAME"} --budget quick`;
}

async function start(kind) {
  remember();
  try {
    await ask("learn", "start", wanted(kind));
    field.accept();
    follow();
  } catch (error) {
    if (error.position === undefined) tell(error.message, true);
    else field.refuse(error);
  }
}

function tell(text, wrong = false) {
  find("state").textContent = text;
  find("state").classList.toggle("error", wrong);
}

let following = false;
let asked = 0; // how often someone wanted to follow: an answer on its way may be older than the last time

/** Ask for news until the training is over. */
function follow() {
  asked += 1;
  if (following) return;
  following = true;
  look();
}

async function look() {
  const before = asked;
  try {
    const news = await ask("learn", "look", { number: seen.number, since: seen.next });
    if (news.number !== seen.number) {
      found = empty();
      waiting.length = 0;
      find("answer").hidden = true;
    }
    seen = { number: news.number, next: news.next };
    waiting.push(...news.events);
    following = news.state === "running" || news.more || asked !== before;
    play(news);
    if (following) setTimeout(look, news.more ? 0 : LOOK);
  } catch (error) {
    following = false;
    allow(true);
    tell(error.message, true);
  }
}

/** Let someone start a training. The page is delivered without, because a click is lost if the first news forbid it. */
function allow(starting) {
  for (const id of ["run", "threshold"]) find(id).disabled = !starting;
}

// A run of a hundred steps is over in a moment: its looks are shown one by one, faster where many wait.
const waiting = [];
const FRAME = 80; // milliseconds
let playing = null;

function play(news) {
  clearTimeout(playing);
  for (let left = Math.ceil(waiting.length / 40); left > 0; left--) take(waiting.shift());
  show(news, following || waiting.length > 0);
  if (waiting.length) playing = setTimeout(play, FRAME, news);
}

function take(event) {
  if (event.event === "begins") found.runs.set(event.network, { steps: [], losses: [], looks: [], accuracies: [], weights: [] });
  if (event.event === "snapshot") {
    const run = found.runs.get(event.network);
    event.losses.forEach((loss, i) => { run.steps.push(event.steps - event.losses.length + i); run.losses.push(loss); });
    run.looks.push(event.steps);
    run.accuracies.push(event.accuracy);
    run.weights.push(event.weights);
    Object.assign(run, { support: event.support, attention: event.attention, most: event.most });
  }
  if (event.event === "ends") Object.assign(found.runs.get(event.network), { ended: event });
  if (event.event === "curves") Object.assign(found, { curves: event.curves, done: event.done, total: event.total });
  if (["answer", "refused", "failed"].includes(event.event)) found.last = event;
}

function show(news, running) {
  allow(!running);
  find("stop").disabled = news.state !== "running";
  if (news.number === 0) return;
  const { last } = found;
  if (running) tell(progress(news));
  else if (last?.event === "refused" || last?.event === "failed") tell(last.message, true);
  else tell(STATES[news.state] ?? news.state, news.state === "failed");
  if (last?.event === "answer") {
    find("answer").hidden = false;
    find("answer").replaceChildren(last.sentence, element("small", {}, last.next ?? `Stored as ${last.study}.`));
    say(last.sentence);
  }
  find("watching").hidden = !found.runs.size;
  find("searching").hidden = news.request.kind !== "threshold";
  if (found.runs.size) watching();
  if (found.curves.length) searching();
}

function progress({ request }) {
  if (request.kind === "threshold") {
    return found.done === undefined ? "Starting…" : `${found.done} of at least ${found.total} trials.`;
  }
  const [name, run] = [...found.runs].at(-1) ?? [];
  if (!run?.looks.length) return name ? `${words[name]}: compiling…` : "Starting…";
  return `${words[name]}: step ${run.looks.at(-1)} of at most ${run.most}.`;
}

// --- One run ---------------------------------------------------------------------------------------------------------

const colours = (names) => Object.fromEntries(names.map((name, i) => [name, `--series-${(i % 6) + 1}`]));
const legend = { showlegend: true, legend: { orientation: "h", y: 1.12, x: 0 } };

function watching() {
  const names = [...found.runs.keys()], ink = colours(names);
  const lines = (x, y) => names.map((name) => ({ type: "scatter", mode: "lines", name: words[name], line: { color: ink[name], width: 2 },
    x: found.runs.get(name)[x], y: found.runs.get(name)[y] }));
  const steps = { title: { text: "step" }, rangemode: "tozero" };
  draw(find("losses"), lines("steps", "losses"), { ...legend, xaxis: steps, yaxis: { title: { text: "nats" }, rangemode: "tozero" } });
  draw(find("accuracies"), lines("looks", "accuracies"), { ...legend, xaxis: steps,
    yaxis: { title: { text: "share right" }, range: [0.4, 1.02], tickformat: ".0%" } });
  const said = [...found.runs].map(([name, run]) => outcome(name, run));
  find("accuracies").setAttribute("aria-label", `Held-out accuracy: ${said.join(" ")}`);
  if ([...found.runs.values()].every((run) => run.ended)) say(said.join(" "));
  for (const [name, run] of found.runs) map(name, run);
  for (const old of find("maps").querySelectorAll("[data-network]")) {
    if (!found.runs.has(old.dataset.network)) old.remove();
  }
}

function outcome(name, run) {
  if (!run.ended) return run.looks.length ? `${words[name]}: ${number(100 * run.accuracies.at(-1), 3)} % at step ${run.looks.at(-1)}.` : "";
  const { success, steps, held_out_accuracy: share } = run.ended;
  return success ? `${words[name]} has learned it after ${steps} steps: all of 10,000 right.`
    : `${words[name]} has not learned it: ${number(100 * share, 4)} % right after ${steps} steps.`;
}

/** Attention or influence: bits across, steps down; a mark above each bit that matters. */
function map(name, run) {
  let place = find("maps").querySelector(`[data-network="${name}"]`);
  if (!place) {
    place = element("div", { "data-network": name }, element("h3"), element("p", { class: "small muted" }), element("div", { class: "chart", role: "img" }));
    find("maps").append(place);
  }
  const [title, told, chart] = place.children;
  title.textContent = `${words[name]}: ${run.attention ? "attention" : "influence"}`;
  told.textContent = outcome(name, run);
  if (!run.weights.length) return;
  chart.setAttribute("aria-label", `${run.attention ? "Attention on" : "Influence of"} each bit; the bits that matter are ${run.support.join(", ")}`);
  const bits = run.weights[0].map((_, bit) => bit);
  const heat = { type: "heatmap", x: bits, y: run.looks, z: run.weights, zmin: 0,
    colorscale: [[0, "--paper"], [1, "--series-1"]], showscale: false,
    hovertemplate: "bit %{x}, step %{y}: %{z:.3f}<extra></extra>" };
  const marks = run.support.map((bit) => ({ x: bit, y: 1, yref: "paper", text: "▼", showarrow: false, yanchor: "bottom",
    font: { color: "--series-2", size: 11 } }));
  draw(chart, [heat], { annotations: marks, margin: { t: 22 }, xaxis: { title: { text: "bit" }, showgrid: false, zeroline: false },
    yaxis: { title: { text: "step" }, autorange: "reversed", showgrid: false, zeroline: false } });
}

// --- The threshold ---------------------------------------------------------------------------------------------------

function searching() {
  const ink = colours(found.curves.map((each) => each.network));
  const traces = [], shapes = [];
  for (const each of found.curves) {
    const colour = ink[each.network], share = each.shares.map(([middle]) => middle);
    traces.push({ type: "scatter", mode: "markers", name: words[each.network], x: each.sizes, y: share,
      error_y: { type: "data", symmetric: false, array: each.shares.map(([m, , high]) => high - m),
        arrayminus: each.shares.map(([m, low]) => m - low), color: colour, thickness: 1, width: 0 },
      marker: { color: colour, size: each.trials.map((n) => 5 + 1.5 * Math.sqrt(n)) },
      hovertemplate: "%{x} samples: %{y:.0%}<extra></extra>" });
    if (each.curve) {
      traces.push({ type: "scatter", mode: "lines", showlegend: false, x: each.curve.sizes, y: each.curve.shares,
        line: { color: colour, width: 2 }, hoverinfo: "skip" });
    }
    if (each.low && each.high) {
      shapes.push({ type: "rect", x0: each.low, x1: each.high, y0: 0, y1: 1, yref: "paper", fillcolor: colour, opacity: 0.14, line: { width: 0 } });
    }
  }
  shapes.push({ type: "line", x0: 0, x1: 1, xref: "paper", y0: 0.8, y1: 0.8, line: { color: "--muted", width: 1, dash: "dot" } });
  draw(find("curves"), traces, { ...legend, shapes, xaxis: { type: "log", title: { text: "samples m" } },
    yaxis: { title: { text: "share of runs" }, range: [-0.03, 1.05], tickformat: ".0%" } });
  find("thresholds").replaceChildren(...found.curves.map((each) => element("tr", {},
    element("th", { scope: "row" }, words[each.network]), element("td", {}, size(each)), element("td", {}, between(each)),
    element("td", {}, String(each.trials.reduce((sum, n) => sum + n, 0))))));
  find("curves").setAttribute("aria-label", `Success against sample size: ${found.curves.map((each) => `${words[each.network]} ${size(each)} ${between(each)}`).join("; ")}`);
}

const size = ({ state: how, sample_size, low }) => how === "above" ? `more than ${number(Math.round(low))}`
  : how === "plateau" ? "none: it levels off" : sample_size ? number(Math.round(sample_size)) : "not known yet";
const between = ({ low, high }) => `${low ? number(Math.round(low)) : "?"} to ${high ? number(Math.round(high)) : "?"}`;

// --- Beginning -------------------------------------------------------------------------------------------------------

const given = state.read();
const networks = (given.networks ?? "transformer,mlp").split(",");
for (const box of boxes) box.checked = networks.includes(box.value);
find("length").value = given.length ?? 24;
find("sample").value = given.sample ?? 100;
const examples = [...document.querySelectorAll("[data-expression]")];
for (const button of examples) {
  button.addEventListener("click", () => { field.write(button.dataset.expression); field.accept(); remember(); });
}
field.write(given.expression ?? examples[0].dataset.expression);
for (const input of [find("expression"), find("length"), find("sample"), ...boxes]) input.addEventListener("input", remember);
find("run").addEventListener("click", () => start("run"));
find("threshold").addEventListener("click", () => start("threshold"));
find("stop").addEventListener("click", () => { find("stop").disabled = true; ask("learn", "stop", {}).catch((error) => tell(error.message, true)); });
remember();
follow(); // a training that another page, or this one before a reload, started
