// The room Construction: weights for an expression, and where they look when a bit is flipped.
import { arrows, ask, debounce, draw, element, fileAddress, latest, number, say, state } from "./room.js";
import { underlined } from "./expression.js";

const find = (id) => document.getElementById(id);
const field = underlined(find("expression"), find("message"));
let bits = "";
let support = new Set();

const wanted = () => ({ expression: field.text(), network: find("network").value,
  context_length: find("length").valueAsNumber || null });

/** Build anew, then look at the input. */
const build = latest(async (signal) => {
  const spec = wanted();
  fit(spec.context_length);
  remember();
  find("found").classList.add("waiting");
  try {
    const found = await ask("construction", "build", spec, signal);
    show(found, spec);
    field.accept();
    find("found").classList.remove("waiting");
    await look();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    field.refuse(error);
  }
});

/** Attention and output for the bits as they are. */
const look = latest(async (signal) => {
  remember();
  try {
    const found = await ask("construction", "attend", { ...wanted(), bits }, signal);
    const right = Math.abs(found.output - found.target) < 0.5;
    const output = Math.abs(found.output) < 1e-12 ? 0 : found.output; // rounding of an exact 0
    find("output").replaceChildren(number(output, 6), element("span", { class: "small muted" }, ` value ${number(found.target)}`));
    find("output").className = right ? "holds" : "fails";
    maps(found.maps);
    say(`The output is ${number(output, 3)}, the value ${number(found.target)}.`);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    field.refuse(error);
  }
});

function remember() {
  state.write({ ...wanted(), bits: bits.includes("1") ? bits : "" });
}

function show(found, spec) {
  const checked = `${found.exhaustive ? "all" : "hard and random"} ${found.inputs_checked.toLocaleString("en")} inputs`;
  find("exact").textContent = found.exact ? "exact" : found.verified ? "as promised" : "not exact";
  find("exact").className = found.verified ? "holds" : "fails";
  find("error").textContent = number(found.max_error, 3);
  find("sharp").textContent = found.gamma === undefined ? "–" : number(found.gamma);
  find("trace").textContent = found.trace === undefined ? "–"
    : number(found.trace) + (found.trace_sem ? ` ± ${number(found.trace_sem, 2)}` : "");
  find("told").textContent = `${found.source}. Checked on ${checked}`
    + (found.promised_error ? `, promised error ${number(found.promised_error, 3)}` : "")
    + (found.gamma === undefined ? "" : `; the proof needs γ ${found.needed === null ? "beyond any" : `≥ ${number(found.needed)}`}`)
    + (found.parameters === undefined ? "." : `; ${found.components} components, ${found.parameters} parameters.`);
  find("norms").replaceChildren(...found.norms.map((norm) => element("tr", {}, element("th", { scope: "row" }, norm.name),
    element("td", {}, number(norm.measured, 6)), element("td", {}, number(norm.promised, 6)),
    element("td", {}, norm.order === null ? "–" : `O(${norm.order})`))));
  find("weights").replaceChildren(...found.weights.map(weight));
  find("download").href = fileAddress("construction", "model.safetensors", spec);
  find("command").textContent = found.command;
  support = new Set(found.support);
  buttons();
  say(`${find("exact").textContent}, checked on ${checked}.`);
}

// --- Heat maps -------------------------------------------------------------------------------------------------------

const height = (rows) => Math.min(26, 6 + rows * 1.4); // in rem

function maps(found) {
  const places = [...find("maps").children];
  found.forEach((map, i) => {
    const place = places[i] ?? element("div", { class: "map", role: "img" }, element("p", { class: "small muted" }), element("div"));
    if (!places[i]) find("maps").append(place);
    const [title, chart] = place.children;
    title.textContent = map.title;
    place.setAttribute("aria-label", `${map.title}. ${described(map)}`);
    chart.style.height = `${height(map.rows.length)}rem`;
    heat(chart, map.values, map.columns, map.rows, { zmin: 0, zmax: 1, colorscale: [[0, "--soft"], [1, "--series-1"]] });
  });
  places.slice(found.length).forEach((place) => place.remove());
}

/** The largest weight of each of the first rows, for those who do not see the map. */
function described(map) {
  return map.values.slice(0, 4).map((row, i) => {
    const seen = row.map((value, j) => [value, map.columns[j]]).filter(([value]) => value > 0.05)
      .toSorted((a, b) => b[0] - a[0]).slice(0, 5);
    return `${map.rows[i]}: ${seen.map(([value, name]) => `${name} ${number(value, 2)}`).join(", ")}`;
  }).join("; ");
}

function weight(each) {
  const chart = element("div", { role: "img", "aria-label": `Heat map of ${each.name}` });
  const size = each.shape.join(" × ") + (each.transposed ? ", transposed" : "");
  const card = element("div", { class: "card" }, element("h3", {}, each.name, " ", element("span", { class: "small muted" }, size)), chart);
  if (each.values === null) {
    chart.append(element("p", { class: "muted" }, "Too large to show; the file has it."));
    return card;
  }
  const largest = Math.max(1e-12, ...each.values.flat().map(Math.abs));
  const along = Array.from({ length: each.values[0].length }, (_, j) => String(j));
  const down = Array.from({ length: each.values.length }, (_, j) => String(j));
  const columns = each.transposed && each.labels?.length === along.length ? each.labels : along;
  const rows = !each.transposed && each.labels?.length === down.length ? each.labels : down;
  chart.style.height = `${height(each.values.length)}rem`;
  heat(chart, each.values, columns, rows, { zmin: -largest, zmax: largest,
    colorscale: [[0, "--series-2"], [0.5, "--soft"], [1, "--series-1"]] });
  return card;
}

function heat(place, z, x, y, scale) {
  const trace = { type: "heatmap", z, x, y, ...scale, xgap: x.length > 40 ? 0 : 1, ygap: y.length > 40 ? 0 : 1,
    colorbar: { thickness: 10, outlinewidth: 0, tickvals: [scale.zmin, (scale.zmin + scale.zmax) / 2, scale.zmax],
      tickformat: ".3~g", tickfont: { color: "--ink" } },
    hovertemplate: "%{y}, %{x}: %{z:.5g}<extra></extra>" };
  const plain = { type: "category", showgrid: false };
  const wide = place.clientWidth || 360; // a card that is not on the page yet
  const narrow = x.length * Math.max(...x.map((name) => name.length)) > wide / 9; // nine pixels a letter
  draw(place, [trace], { margin: { t: 6, b: narrow ? 44 : 30, l: 40, r: 8 },
    xaxis: { ...plain, tickangle: narrow ? -90 : 0, tickfont: { size: 11, color: "--ink" } },
    yaxis: { ...plain, autorange: "reversed" } });
}

// --- Bits ------------------------------------------------------------------------------------------------------------

/** Bits for a context of this length: new ones are 0. */
function fit(length) {
  if (!Number.isInteger(length) || length < 1 || length > Number(find("length").max)) return;
  bits = bits.slice(0, length).padEnd(length, "0");
  buttons();
}

function buttons() {
  const focused = document.activeElement?.dataset?.input;
  find("bits").replaceChildren(...[...bits].map((bit, j) => element("button", { type: "button", "data-input": j,
    class: `${bit === "1" ? "one" : "zero"}${support.has(j) ? " relevant" : ""}`, "aria-pressed": String(bit === "1"),
    "aria-label": `x${j}${support.has(j) ? ", relevant" : ""}: ${bit}`, title: `x${j}`, tabindex: j ? -1 : 0,
    onclick: () => set(bits.slice(0, j) + (bit === "1" ? "0" : "1") + bits.slice(j + 1)) }, bit)));
  if (focused !== undefined) find("bits").querySelector(`[data-input="${focused}"]`)?.focus();
}

function set(to) {
  bits = to;
  buttons();
  look();
}

arrows(find("bits"), () => 8);
find("zeros").addEventListener("click", () => set("0".repeat(bits.length)));
find("ones").addEventListener("click", () => set("1".repeat(bits.length)));
find("dice").addEventListener("click", () => set(Array.from(bits, () => (Math.random() < 0.5 ? "1" : "0")).join("")));

// --- Beginning -------------------------------------------------------------------------------------------------------

const later = debounce(build, 250);
find("wanted").addEventListener("submit", (event) => event.preventDefault());
find("expression").addEventListener("input", later);
find("network").addEventListener("change", build);
find("slider").addEventListener("input", () => { find("length").value = find("slider").value; later(); });
find("length").addEventListener("input", () => { find("slider").value = find("length").value; later(); });

const given = state.read();
field.write(given.expression ?? "maj(x1, x4, x6)");
const last = Math.max(-1, ...[...field.text().matchAll(/x(\d{1,3})/g)].map((match) => Number(match[1])));
find("network").value = given.network ?? "positional";
if (!find("network").value) find("network").value = "positional";
find("length").value = find("slider").value = given.context_length ?? Math.max(12, last + 1);
bits = /^[01]*$/.test(given.bits ?? "") ? given.bits ?? "" : "";
fit(find("length").valueAsNumber);
build();
