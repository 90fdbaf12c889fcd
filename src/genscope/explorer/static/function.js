// The room Function: as you type, what the spectrum says; a click in the truth table makes a new expression.
import { address, arrows, ask, debounce, draw, element, latest, number, say, state } from "./room.js";
import { underlined } from "./expression.js";

const find = (id) => document.getElementById(id);
const field = underlined(find("expression"), find("message"));
const values = [...document.querySelectorAll("input[name=values]")];
const chosen = () => values.find((radio) => radio.checked).value;

const update = latest(async (signal) => {
  const expression = field.text();
  state.write({ expression, values: chosen() === "signs" ? "" : chosen() });
  find("build").href = address("construction", { expression });
  find("train").href = address("learn", { expression });
  find("found").classList.add("waiting");
  try {
    show(await ask("function", "analyse", { expression, values: chosen() }, signal));
    field.accept();
    find("found").classList.remove("waiting");
  } catch (error) {
    if (error.name === "AbortError") throw error;
    field.refuse(error);
  }
});

function show(found) {
  const names = found.variables.map((j) => `x${j}`);
  const relevant = found.support.map((j) => `x${j}`);
  find("support").textContent = relevant.length > 8 ? `${relevant.length} variables` : relevant.join(" ") || "none";
  find("support").title = relevant.join(", ");
  find("ones").textContent = `${number(found.ones)} of ${number(found.inputs)}`;
  find("degree").textContent = found.degree;
  find("sparsity").textContent = found.sparsity;
  find("total").textContent = number(found.total_influence);
  bars("levels", found.levels.map((_, level) => level), found.levels, "level", "weight", "--series-1");
  bars("influences", names, found.influences, "variable", "influence", "--series-2");
  components(found);
  table(found);
  say(`Degree ${found.degree}, sparsity ${found.sparsity}, ${relevant.length} relevant variables.`);
}

function bars(id, x, y, horizontal, vertical, colour) {
  const trace = { type: "bar", x, y, marker: { color: colour }, hovertemplate: `${horizontal} %{x}: %{y:.6g}<extra></extra>` };
  const layout = { bargap: 0.35, xaxis: { type: "category", title: { text: horizontal } },
    yaxis: { title: { text: vertical }, rangemode: "tozero", range: Math.max(...y, 0) > 0 ? undefined : [0, 1] } };
  find(id).setAttribute("aria-label", `${vertical} of each ${horizontal}: ${x.map((name, i) => `${name} ${number(y[i], 3)}`).join(", ")}`);
  draw(find(id), [trace], layout);
}

function components(found) {
  find("components").replaceChildren(...found.components.map((each) => element("tr", {},
    element("th", { scope: "row", class: "mono" }, each.set.map((j) => `x${j}`).join(" ")),
    element("td", {}, number(each.chi)), element("td", {}, number(each.phi)))));
  const more = found.sparsity - found.components.length;
  find("constant").textContent = `Constant: ${number(found.constant.chi)} with χ, ${number(found.constant.phi)} with φ.`
    + (more > 0 ? ` ${more} smaller or equal components are not listed.` : "");
}

// --- The truth table: the first half of the variables across, the others down -----------------------------------------

function table(found) {
  const focused = document.activeElement?.dataset?.input;
  if (found.table === null) {
    find("table").replaceChildren(element("p", { class: "muted" },
      `${found.inputs.toLocaleString("en")} values are too many to show; up to 8 variables are.`));
    return;
  }
  const { variables } = found;
  const across = Math.ceil(variables.length / 2), down = variables.length - across;
  const head = variables.slice(0, across).map((variable, j) => element("tr", {},
    ...(down ? variables.slice(across).map((other) => element("th", { scope: "col" }, j === across - 1 ? `x${other}` : "")) : []),
    element("th", { scope: "row", class: "name" }, `x${variable}`),
    ...Array.from({ length: 2 ** across }, (_, i) => element("th", { scope: "col" }, String((i >> j) & 1)))));
  const body = Array.from({ length: 2 ** down }, (_, row) => element("tr", {},
    ...Array.from({ length: down }, (_, j) => element("th", { scope: "row" }, String((row >> j) & 1))),
    element("td", { class: "name" }),
    ...Array.from({ length: 2 ** across }, (_, column) => element("td", {}, cell(found, row * 2 ** across + column)))));
  find("table").replaceChildren(element("table", { class: variables.length > 6 ? "dense" : "" },
    element("caption", { class: "unseen" }, "Truth table; arrow keys move, the space bar changes a value"),
    element("thead", {}, ...head), element("tbody", {}, ...body)));
  find("table").dataset.across = 2 ** across;
  if (focused !== undefined) find("table").querySelector(`[data-input="${focused}"]`)?.focus();
}

function cell(found, input) {
  const where = found.variables.map((variable, j) => `x${variable}=${(input >> j) & 1}`).join(", ") || "everywhere";
  return element("button", { type: "button", class: found.table[input] === "1" ? "one" : "zero", "data-input": input,
    tabindex: input ? -1 : 0, "aria-label": `${where}: value ${found.table[input]}`, disabled: !found.variables.length,
    onclick: () => flip(found, input) }, found.table[input]);
}

function flip(found, input) {
  const bits = [...found.table];
  bits[input] = bits[input] === "1" ? "0" : "1";
  const value = BigInt(`0b${bits.toReversed().join("")}`);
  field.write(`table(0x${value.toString(16)}; ${found.variables.map((j) => `x${j}`).join(", ")})`);
  update();
}

arrows(find("table"), () => Number(find("table").dataset.across));

// --- Beginning -------------------------------------------------------------------------------------------------------

const examples = [...document.querySelectorAll("[data-expression]")];
for (const button of examples) {
  button.addEventListener("click", () => { state.visit(); field.write(button.dataset.expression); update(); });
}
find("expression").addEventListener("input", debounce(update, 100));
for (const radio of values) radio.addEventListener("change", update);
const given = state.read();
for (const radio of values) radio.checked = radio.value === (given.values ?? "signs");
if (!values.some((radio) => radio.checked)) values[0].checked = true;
field.write(given.expression ?? examples[1].dataset.expression);
update();
