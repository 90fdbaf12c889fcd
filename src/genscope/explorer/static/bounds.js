// The room Bounds. The state is a list of bounds as texts ("lower context_length=300 support_size=3") and two axes.
import { ask, debounce, draw, element, latest, number, say, state, typeset, Refusal } from "./room.js";

const $ = (id) => document.getElementById(id);
const FIRST = "pac-bayes";
const MARKS = ["circle", "square", "diamond", "triangle-up"];
const DASHES = ["dash", "dot", "dashdot", "longdash", "longdashdot"];
const STEPS = 400; // positions of a slider

let bounds = []; // { name, texts: {argument: text}, fields }
let axes = { x: null, y: null }; // { name, from, to }

const word = ({ name, texts }) => [name, ...Object.entries(texts).filter(([, t]) => t).map(([a, t]) => `${a}=${t}`)].join(" ");
const words = () => bounds.map(word);
const mine = (index) => `--mine: var(--series-${index + 1})`;

function parse(text) {
  const [name, ...rest] = text.split(/\s+/).filter(Boolean);
  return { name, texts: Object.fromEntries(rest.map((each) => [each.split("=")[0], each.slice(each.indexOf("=") + 1)])) };
}

function parseAxis(text) {
  const [name, from, to] = (text ?? "").split(":");
  return to === undefined ? null : { name, from, to };
}

// --- Sliders: a place between 0 and STEPS, on a logarithmic scale where the range says so -----------------------------

function toPlace({ low, high, log }, value) {
  const share = log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return Number.isFinite(share) ? Math.round(STEPS * Math.min(1, Math.max(0, share))) : 0;
}

function toText({ low, high, log, whole }, place) {
  const share = place / STEPS;
  const value = log ? low * (high / low) ** share : low + (high - low) * share;
  return String(whole ? Math.round(value) : Number(value.toPrecision(3)));
}

// --- Arguments --------------------------------------------------------------------------------------------------------

function fieldOf(bound, index, facts) {
  const id = `bound-${index}-${facts.name}`;
  const error = element("p", { class: "message error", id: `${id}-error`, "aria-live": "polite" }, facts.error);
  const about = { "aria-describedby": `${id}-about ${id}-error`, "aria-invalid": facts.error ? "true" : "false" };
  const change = (text) => { bound.texts[facts.name] = text; refresh(); };
  let input;
  if (facts.options.length) {
    input = element("select", { id, ...about, onchange: () => change(input.value) },
      ...facts.options.map((option) => element("option", { selected: option === facts.text }, option)));
  } else {
    const slider = facts.slider && element("input", { type: "range", min: 0, max: STEPS, step: 1,
      value: toPlace(facts.slider, Number(facts.text)), "aria-label": `${facts.label}, slider`, "aria-valuetext": facts.text,
      oninput: () => {
        input.value = toText(facts.slider, Number(slider.value));
        slider.setAttribute("aria-valuetext", input.value);
        change(input.value);
      } });
    input = element("input", { id, ...about, inputmode: "decimal", autocomplete: "off", spellcheck: "false",
      value: facts.text, placeholder: facts.more ? facts.default || "default" : "",
      oninput: () => {
        if (slider) slider.value = toPlace(facts.slider, Number(input.value));
        change(input.value.trim());
      } });
    if (slider) return field(facts, id, element("div", { class: "range" }, slider, input), error);
  }
  return field(facts, id, input, error);
}

const field = (facts, id, control, error) => element("div", { class: "field", "data-argument": facts.name },
  element("label", { for: id }, facts.label),
  control,
  element("p", { class: "small muted meaning", id: `${id}-about` }, facts.meaning),
  error);

function cardOf(bound, index, facts) {
  const plain = facts.fields.filter((each) => !each.more).map((each) => fieldOf(bound, index, each));
  const more = facts.fields.filter((each) => each.more).map((each) => fieldOf(bound, index, each));
  const changed = facts.fields.some((each) => each.more && bound.texts[each.name]);
  return element("section", { class: "card bound", style: mine(index), "aria-label": `Arguments of ${facts.name}` },
    element("div", { class: "row" }, element("h3", {}, facts.name),
      bounds.length > 1 ? element("button", { type: "button", onclick: () => remove(index) }, "Remove") : null),
    ...plain,
    more.length ? element("details", { open: changed }, element("summary", {}, "Further arguments"), ...more) : null);
}

// --- Numbers ----------------------------------------------------------------------------------------------------------

function promiseOf(facts, index) {
  const head = element("h3", {}, element("span", { class: "mark", "aria-hidden": "true" }), `${facts.name}: ${facts.title.replace(/\.$/, "")}`);
  const command = element("pre", {}, facts.command);
  if (facts.error) {
    return element("section", { class: "card promise", style: mine(index) }, head, element("p", { class: "message error" }, facts.error));
  }
  const rows = facts.terms.map((term) => element("tr", {}, element("th", { scope: "row" }, term.name), element("td", {}, term.shown)));
  return element("section", { class: "card promise", style: mine(index) }, head,
    element("p", { class: "value" }, facts.value === null ? "∞ (too large for a float)" : facts.shown),
    element("p", { class: "small muted" }, `${facts.lower ? "At least this: " : ""}${facts.measure} · ${facts.source}`),
    element("p", { class: facts.vacuous ? "fails" : facts.explicit ? "holds" : "undecided" }, facts.trust),
    facts.terms.length > 1 ? element("table", {}, element("caption", {}, "Terms, whose sum is the bound"), element("tbody", {}, ...rows)) : null,
    facts.choices.length ? element("p", { class: "small" }, `Chosen: ${facts.choices.join(", ")}.`) : null,
    element("details", {}, element("summary", {}, "The theorem"), ...facts.about.map((pieces) => element("p", { class: "small scroll" }, ...typeset(pieces)))),
    command);
}

const view = latest(async (signal) => {
  let found;
  try {
    found = await ask("bounds", "view", { bounds: words() }, signal);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    $("problem").textContent = error.message;
    return;
  }
  $("problem").textContent = "";
  showCards(found.bounds);
  $("numbers").replaceChildren(...found.bounds.map(promiseOf));
  chooseAxes(found.axes);
  state.write({ bounds: words().join(";"), x: axisWord("x"), y: axisWord("y") });
  say(found.bounds.map((each) => each.error || `${each.name} ${each.shown}. ${each.trust}`).join(" "));
  await Promise.all([curve.x(), curve.y()]);
});

const axisWord = (which) => axes[which] && [axes[which].name, axes[which].from, axes[which].to].join(":");

/** New cards where the bounds are others; otherwise only what is said beside the fields, so that nobody loses the focus. */
function showCards(found) {
  const key = found.map((each) => each.name).join();
  if ($("chosen").dataset.key === key) {
    found.forEach((facts, index) => facts.fields.forEach((each) => {
      const id = `bound-${index}-${each.name}`;
      $(`${id}-error`).textContent = each.error;
      $(id).setAttribute("aria-invalid", each.error ? "true" : "false");
    }));
    return;
  }
  $("chosen").dataset.key = key;
  $("chosen").replaceChildren(...found.map((facts, index) => cardOf(bounds[index], index, facts)));
}

function chooseAxes(known) {
  ["x", "y"].forEach((which, order) => {
    let now = axes[which];
    if (!now || !known.some((each) => each.name === now.name)) {
      const other = axes[which === "x" ? "y" : "x"]?.name;
      const free = known.filter((each) => each.name !== other);
      const next = free[Math.min(which === "y" && !other ? order : 0, free.length - 1)] ?? known[0];
      const [from, to] = next.span.split(":");
      now = axes[which] = { name: next.name, from, to };
    }
    const select = $(`${which}-axis`);
    select.replaceChildren(...known.map((each) => element("option", { value: each.name, selected: each.name === now.name,
      "data-span": each.span }, each.label)));
    if (document.activeElement !== $(`${which}-from`)) $(`${which}-from`).value = now.from;
    if (document.activeElement !== $(`${which}-to`)) $(`${which}-to`).value = now.to;
  });
}

// --- Curves -----------------------------------------------------------------------------------------------------------

const steep = (values) => values.length && Math.min(...values) > 0 && Math.max(...values) > 50 * Math.min(...values);

function traces(found) {
  const made = [];
  found.lines.forEach((line, index) => {
    if (line.error) return;
    const colour = `--series-${index + 1}`;
    const name = `${line.name}${line.mark ? ` (${line.mark})` : ""}${line.flat ? ` (no ${found.axis.replaceAll("_", " ")})` : ""}`;
    made.push({ x: line.places, y: line.values, name, mode: "lines+markers", line: { color: colour, width: 2.5 },
      marker: { symbol: MARKS[index], size: 6, color: colour } });
    const terms = Object.entries(line.terms);
    if (terms.length > 1) {
      terms.forEach(([term, values], i) => made.push({ x: line.places, y: values, name: found.lines.length > 1 ? `${line.name}: ${term}` : term,
        mode: "lines", line: { color: colour, width: 1.3, dash: DASHES[i % DASHES.length] } }));
    }
    if (line.trivial.every((value) => value !== null)) {
      made.push({ x: line.places, y: line.trivial, name: `trivial bound (${line.name})`, mode: "lines",
        line: { color: "--muted", width: 1.3, dash: DASHES[(index + 1) % DASHES.length] } });
      if (line.crossings.length) {
        made.push({ x: line.crossings, y: line.crossings.map(() => line.trivial[0]), name: `${line.name}: vacuous on the shaded side`, mode: "markers",
          marker: { symbol: "x", size: 12, color: colour } });
      }
    }
  });
  return made;
}

function drawing(which) {
  const section = document.querySelector(`[data-which="${which}"]`);
  const [error, said, table, commands] = [".curve > .message", ".said", ".scroll", ".commands"].map((each) => section.querySelector(each));
  return latest(async (signal) => {
    const { name, from, to } = axes[which];
    section.classList.add("waiting");
    try {
      const found = await ask("bounds", "curve", { bounds: words(), axis: name, span: `${from}:${to}` }, signal);
      error.textContent = "";
      const good = found.lines.filter((line) => !line.error);
      const numbers = good.flatMap((line) => [...line.values, ...line.trivial]).filter((value) => value !== null && value !== 0);
      const several = found.measures.length > 1 ? "value" : found.measures[0] ?? "";
      const vacuous = good.flatMap((line) => line.vacuous.map(([x0, x1]) => ({ type: "rect", x0, x1, yref: "paper", y0: 0, y1: 1, layer: "below",
        fillcolor: "--muted", opacity: 0.13, line: { width: 0 } })));
      const crossings = good.flatMap((line) => line.crossings.map((x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1,
        line: { color: `--series-${found.lines.indexOf(line) + 1}`, width: 1, dash: "dot" } })));
      await draw(section.querySelector(".chart"), traces(found), {
        xaxis: { title: { text: found.axis.replaceAll("_", " ") }, type: Number(from) > 0 ? "log" : "linear", exponentformat: "power" },
        yaxis: { title: { text: several }, type: steep(numbers) ? "log" : "linear", exponentformat: "power", rangemode: "tozero" },
        showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom" }, shapes: [...vacuous, ...crossings], margin: { t: 30 },
      });
      const mixed = found.measures.length > 1 ? [element("li", {}, `These are values of different kinds (${found.measures.join(", ")}): compare shapes, not heights.`)] : [];
      said.replaceChildren(...mixed, ...found.lines.map((line) => element("li", {},
        line.error || [`${line.name}:`, line.said, line.proved, line.flat ? "It does not depend on this argument, so its line is flat." : "", line.note].filter(Boolean).join(" "))));
      commands.replaceChildren(...found.lines.filter((line) => line.command).map((line) => element("pre", {}, line.command)));
      table.replaceChildren(numbersTable(found));
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      error.textContent = problem.message;
    } finally {
      if (!signal.aborted) section.classList.remove("waiting");
    }
  });
}

function numbersTable(found) {
  const good = found.lines.filter((line) => !line.error && !line.flat);
  const rows = good.flatMap((line) => line.places.map((place, i) => element("tr", {},
    element("th", { scope: "row" }, line.name), element("td", {}, number(place, 7)), element("td", {}, line.values[i] === null ? "∞" : number(line.values[i], 7)))));
  return element("table", {}, element("thead", {}, element("tr", {},
    ...["bound", found.axis.replaceAll("_", " "), "value"].map((text) => element("th", { scope: "col" }, text)))), element("tbody", {}, ...rows));
}

const curve = { x: drawing("x"), y: drawing("y") };
const refresh = debounce(view, 120);

// --- What can be pressed ----------------------------------------------------------------------------------------------

async function choose(name, keep) {
  const found = await ask("bounds", "example", { name });
  const made = parse(found.bound);
  bounds = keep ? [...bounds, made] : [made];
  if (!keep) axes = { x: null, y: null };
  await view();
}

async function remove(index) {
  bounds.splice(index, 1);
  delete $("chosen").dataset.key;
  buttons();
  await view();
  $("name").focus();
}

function buttons() {
  $("add").disabled = bounds.length >= Number($("add").dataset.most);
  $("summary").textContent = $("name").selectedOptions[0]?.title ?? "";
}

$("name").addEventListener("change", buttons);
$("show").addEventListener("click", async () => { delete $("chosen").dataset.key; await choose($("name").value, false); buttons(); });
$("add").addEventListener("click", async () => { await choose($("name").value, true); buttons(); });
$("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(location.href);
    $("copied").textContent = "Copied. It opens where this explorer runs.";
  } catch {
    $("copied").textContent = `Copy it from here: ${location.href}`;
  }
});
for (const which of ["x", "y"]) {
  const changed = debounce(() => {
    axes[which] = { name: $(`${which}-axis`).value, from: $(`${which}-from`).value.trim(), to: $(`${which}-to`).value.trim() };
    state.write({ bounds: words().join(";"), x: axisWord("x"), y: axisWord("y") });
    curve[which]();
  }, 200);
  $(`${which}-axis`).addEventListener("change", () => {
    [$(`${which}-from`).value, $(`${which}-to`).value] = $(`${which}-axis`).selectedOptions[0].dataset.span.split(":");
    changed();
  });
  $(`${which}-from`).addEventListener("input", changed);
  $(`${which}-to`).addEventListener("input", changed);
}

const given = state.read();
axes = { x: parseAxis(given.x), y: parseAxis(given.y) };
if (given.bounds) {
  bounds = given.bounds.split(";").filter(Boolean).map(parse);
  $("name").value = bounds[0].name;
  await view();
} else {
  $("name").value = FIRST;
  await choose(FIRST, false);
}
buttons();
