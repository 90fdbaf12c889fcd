// What every room needs: questions that can be given up, drawings in the page's colours, and a state in the address.

// Private addresses begin anew with every start of the explorer; `notice.js` leads older links to this one.
try { localStorage.home = location.pathname.replace(/[^/]*$/, ""); } catch { /* private windows may forbid it */ }

/** A question that the server refused; `position` and `length` say where, if it knows. */
export class Refusal extends Error {
  constructor(status, { message, position, length }) {
    super(message);
    Object.assign(this, { status, position, length });
  }
}

/** Ask the server; gives up when `signal` aborts. */
export async function ask(room, question, data, signal) {
  let response;
  try {
    response = await fetch(`api/${room}/${question}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(data),
      signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, { message: "The explorer does not answer: is genscope serve still running?" });
  }
  const type = response.headers.get("content-type") ?? "";
  const found = type.startsWith("application/json") ? await response.json() : {
    message: response.status === 403
      ? "The explorer does not know this page any more: it was started anew, or nothing was asked for two hours. " +
        "Open the address that genscope serve printed."
      : `The explorer answered with status ${response.status}.`,
  };
  if (!response.ok) throw new Refusal(response.status, found);
  return found;
}

/** The address of a file of a room. */
export const fileAddress = (room, download, data) =>
  `files/${room}/${download}?ask=${encodeURIComponent(JSON.stringify(data))}`;

/** Run only the newest call: a new one aborts the one before. `work(signal, ...)` is async. */
export function latest(work) {
  let running = null;
  return async (...given) => {
    running?.abort();
    const mine = (running = new AbortController());
    try {
      return await work(mine.signal, ...given);
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    }
  };
}

/** Call once things have been quiet for so many milliseconds. */
export function debounce(work, milliseconds) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...given), milliseconds);
  };
}

const LONGEST_QUERY = 4000; // characters; what is longer stays behind the #, which no server sees and none refuses

/** The address of a page with a state in it; what is empty is left out. */
export function address(path, values) {
  const query = String(new URLSearchParams(Object.entries(values).filter(([, value]) => value !== "" && value != null)));
  return query ? `${path}${query.length > LONGEST_QUERY ? "#" : "?"}${query}` : path;
}

/** The state of the page in its address: a link reproduces the view. */
export const state = {
  read: () => Object.fromEntries(new URLSearchParams(location.search || location.hash.slice(1))),
  write: (values) => history.replaceState(history.state, "", address(location.pathname, values)),
  /** Call before a step that the browser's Back should undo: what is written next belongs to a new entry. */
  visit: () => {
    history.replaceState({ room: true }, "");
    history.pushState({ room: true }, "");
  },
};
addEventListener("popstate", ({ state: entry }) => { if (entry?.room) location.reload(); }); // the page reads its address

/** An element with attributes and children; texts are texts, never HTML. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** Texts and formulas in order; MathML comes from the server's own docstrings, and is parsed as XML. */
export const typeset = (pieces) => pieces.map(({ text, math }) => math === undefined
  ? text.replaceAll("`", "") : document.importNode(new DOMParser().parseFromString(math, "application/xml").documentElement, true));

/** The small question mark of a word in the glossary. */
export const help = (name, word = name) =>
  element("button", { type: "button", class: "help", popovertarget: `help-${name.replaceAll(" ", "-")}`,
    "aria-label": `What is ${word}?` }, "?");

/** A number for people: few digits, a true minus. */
export function number(value, digits = 4) {
  if (value == null) return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return (Math.abs(value) < 1e4 ? String(value) : value.toLocaleString("en")).replace("-", "−");
  const size = Math.abs(value);
  const text = size >= 1e6 || size < 1e-4 ? value.toExponential(digits - 1) : String(Number(value.toPrecision(digits)));
  return text.replaceAll("-", "−");
}

/** Tell those who listen instead of look; the newest text wins. */
export const say = debounce((text) => { document.getElementById("live").textContent = text; }, 600);

/** Arrow keys move between the elements of a place that have `data-input`; `across()` is the length of a row. */
export function arrows(place, across) {
  place.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across(), ArrowDown: across() }[event.key];
    const from = event.target.dataset.input;
    if (!step || from === undefined) return;
    event.preventDefault();
    const to = place.querySelector(`[data-input="${Number(from) + step}"]`);
    if (!to) return;
    event.target.tabIndex = -1; // one stop of the Tab key for all of them
    to.tabIndex = 0;
    to.focus();
  });
}

// --- Drawings --------------------------------------------------------------------------------------------------------

let plotly = null;

/** Plotly, or null where its script does not load; the next drawing tries again. */
function loadPlotly() {
  plotly ??= new Promise((done) => {
    const script = element("script", { src: document.documentElement.dataset.plotly });
    script.addEventListener("load", () => done(window.Plotly));
    script.addEventListener("error", () => { plotly = null; script.remove(); done(null); });
    document.head.append(script);
  });
  return plotly;
}

/** The page's colour of a name such as "--ink", as it is now. */
export function colour(name) {
  const probe = element("span", { style: `color: var(${name})` });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function coloured(value, known) {
  if (typeof value === "string" && value.startsWith("--")) return (known[value] ??= colour(value));
  if (ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map((part) => coloured(part, known));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, coloured(part, known)]));
  }
  return value;
}

const axis = { gridcolor: "--rule", linecolor: "--muted", zerolinecolor: "--rule", tickfont: { color: "--ink" },
  automargin: true, fixedrange: true };
const drawn = new Map(); // places that left the page are forgotten when colours change

/** Draw with Plotly; strings such as "--series-1" are colours of the page, and follow when these change. */
export async function draw(place, traces, layout = {}) {
  drawn.set(place, { traces, layout });
  const Plotly = await loadPlotly();
  if (drawn.get(place)?.traces !== traces) return;
  if (Plotly) render(Plotly, place);
  else place.replaceChildren(element("p", { class: "undrawn" }, "This chart could not be drawn: is genscope serve still running?"));
}

function render(Plotly, place) {
  const { traces, layout } = drawn.get(place);
  const { xaxis, yaxis, margin, ...rest } = layout;
  const whole = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: "--ink" },
    colorway: [1, 2, 3, 4, 5, 6].map((i) => `--series-${i}`),
    hoverlabel: { bgcolor: "--soft", bordercolor: "--muted", font: { color: "--ink" } },
    showlegend: false, dragmode: false, ...rest,
    margin: { l: 48, r: 12, t: 12, b: 40, ...margin },
    xaxis: { ...axis, ...xaxis }, yaxis: { ...axis, ...yaxis },
  };
  const known = {};
  place.querySelector(":scope > .undrawn")?.remove();
  Plotly.react(place, coloured(traces, known), coloured(whole, known), { responsive: true, displayModeBar: false });
}

function redraw() {
  for (const [place, { traces, layout }] of drawn) {
    if (place.isConnected) draw(place, traces, layout);
    else drawn.delete(place);
  }
}
document.addEventListener("themechange", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
