// The room Studies: it looks at the store every few seconds and never writes. The state is in the address.
import { ask, debounce, draw, element, fileAddress, latest, number, say, state, Refusal } from "./room.js";

const $ = (id) => document.getElementById(id);
const PAGE = 50;
const EVERY = 2000; // milliseconds between two looks at the store, more where it answers slowly
const REDRAW = 10000; // milliseconds between two drawings of the figures while trials arrive
const VERDICTS = { holds: "✓ holds", fails: "✗ fails", undecided: "– undecided" };

const view = { tab: "studies", part: "figures", study: "", filter: "", order: "finished", descending: "yes", first: "0", trial: "", claim: "", ...state.read() };
let known = null; // the newest overview
let drawn = { study: "", total: -1, at: 0 };
let lost = ""; // what the address asked for in vain
let selection = ""; // whose figures are shown; the server chooses while none is chosen

const keep = () => state.write({ ...view, tab: view.tab === "studies" ? "" : view.tab, part: view.part === "figures" ? "" : view.part,
  order: view.order === "finished" ? "" : view.order, descending: view.descending === "yes" ? "" : view.descending, first: view.first === "0" ? "" : view.first });
const current = () => known?.studies.find((each) => each.name === view.study);
const total = (study) => study.ok + study.failed;
const count = (value) => value.toLocaleString("en");
const trialsWord = (value) => `${count(value)} trial${value === 1 ? "" : "s"}`;

/** Show what went wrong with a question, and nothing when it went well. */
async function attempt(place, work) {
  try {
    const found = await work();
    place.textContent = "";
    return found;
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    if (!(error instanceof Refusal)) throw error;
    place.textContent = error.message;
    return undefined;
  }
}

// --- The store --------------------------------------------------------------------------------------------------------

async function look() {
  const began = performance.now();
  try {
    show(await ask("studies", "overview", {}));
    $("trouble").hidden = !lost;
    $("trouble").textContent = lost;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    $("trouble").hidden = false;
    $("trouble").textContent = error.message;
  }
  setTimeout(whenSeen, Math.max(EVERY, 10 * (performance.now() - began)));
}

/** The next look, once somebody looks at the page. */
function whenSeen() {
  if (!document.hidden) look();
  else document.addEventListener("visibilitychange", whenSeen, { once: true });
}

function show(found) {
  const problem = $("problem");
  problem.hidden = !found.problem;
  $("content-of-store").hidden = Boolean(found.problem);
  if (found.problem) {
    const [title, text, command] = problem.children;
    title.textContent = found.problem.title;
    text.textContent = found.problem.text;
    command.textContent = found.problem.command;
    command.hidden = !found.problem.command;
    known = null;
    return;
  }
  const before = known;
  known = found;
  if (!current() && view.study) lost = `The store has no study ${view.study}: here is another. Choose one from the list.`;
  if (!current()) view.study = (found.studies.find(total) ?? found.studies[0]).name;
  $("store").textContent = found.store;
  $("tab-claims").textContent = `Claims (${found.claims})`;
  list(found.studies);
  const workers = found.workers.map((each) => element("li", {}, `${each.host}, process ${each.process}: ${each.batches} batch${each.batches === 1 ? "" : "es"} in progress`));
  $("workers").replaceChildren(...(workers.length ? workers : [element("li", { class: "muted" }, "Nothing. New trials appear here as they finish.")]));
  const old = before?.studies.find((each) => each.name === view.study);
  if (!before) {
    tab(view.tab);
    choose(view.study, true);
    if (view.trial) openTrial(view.trial);
  } else if (!old || total(old) !== total(current())) arrived();
  else facts();
  if (before && before.claims !== found.claims && view.tab === "claims") claims();
}

function list(studies) {
  const buttons = new Map([...$("list").querySelectorAll("button")].map((each) => [each.dataset.study, each]));
  if ([...buttons.keys()].join("\n") !== studies.map((each) => each.name).join("\n")) {
    $("list").replaceChildren(...studies.map((study) => {
      const button = element("button", { type: "button", "data-study": study.name, onclick: () => { if (study.name !== view.study) state.visit(); choose(study.name); } },
        element("span", { class: "name" }, study.name), element("span", { class: "state small muted" }));
      buttons.set(study.name, button);
      return element("li", {}, button);
    }));
  }
  for (const study of studies) {
    const button = buttons.get(study.name);
    button.querySelector(".state").textContent = [trialsWord(total(study)), study.failed ? `${count(study.failed)} failed` : "", speed(study)].filter(Boolean).join(", ");
    if (study.name === view.study) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

const speed = ({ rate }) => !rate ? "" : rate >= 1 ? `${number(rate, 2)} per second` : `one in ${number(1 / rate, 2)} s`;

// --- A study ----------------------------------------------------------------------------------------------------------

function choose(name, again = false) {
  if (!again) lost = "";
  if (!again && name !== view.study) Object.assign(view, { filter: "", order: "finished", descending: "yes", first: "0" });
  if (name !== view.study) selection = "";
  view.study = name;
  $("filter").value = view.filter;
  const study = current();
  $("study-title").textContent = study.title;
  $("study-source").textContent = `${study.name} · ${study.source}`;
  list(known.studies);
  const [shelf, button] = [$("list"), $("list").querySelector("[aria-current]")];
  if (again) shelf.scrollTop = button.offsetTop - shelf.offsetTop - shelf.clientHeight / 3;
  keep();
  progress();
  part(view.part);
}

/** New trials of the study in view. */
function arrived() {
  progress();
  if (view.part === "trials" && !view.trial) rows();
  else if (Date.now() - drawn.at > REDRAW) figures();
}

let finished = null;

function facts() {
  const study = current();
  const rate = speed(study);
  const shown = [
    ["finished trials", count(total(study))],
    ["failed trials", count(study.failed)],
    ["last finished", finished ? ago(finished) : "–"],
    ["rate now", rate || "–"],
  ];
  $("facts").replaceChildren(...shown.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  if (past < 90) return `${Math.round(past)} s ago`;
  if (past < 5400) return `${Math.round(past / 60)} min ago`;
  if (past < 48 * 3600) return `${Math.round(past / 3600)} h ago`;
  return new Date(1000 * seconds).toISOString().slice(0, 10);
}

const progress = latest(async (signal) => {
  const found = await attempt($("plans"), () => ask("studies", "progress", { study: view.study }, signal));
  if (!found) return;
  finished = found.finished;
  facts();
  $("plans").replaceChildren(...found.plans.map((plan) => {
    const most = plan.exact ? "" : "at most ";
    const text = plan.stored === null ? `plans ${most}${trialsWord(plan.planned)}` : `${count(plan.stored)} of ${most}${trialsWord(plan.planned)}`;
    return element("div", { class: "plan" }, element("span", {}, plan.budget),
      element("progress", { max: plan.planned, value: plan.stored ?? 0, "aria-label": `Budget ${plan.budget}: ${text}` }), element("span", { class: "muted" }, text));
  }));
});

function part(name) {
  view.part = name;
  for (const each of ["figures", "trials"]) {
    $(each).hidden = each !== name;
    $(`tab-${each}`).setAttribute("aria-selected", String(each === name));
    $(`tab-${each}`).tabIndex = each === name ? 0 : -1;
  }
  keep();
  if (name === "trials") rows();
  else if (drawn.study !== view.study || drawn.total !== total(current())) figures();
}

function tableOf({ caption, header, rows: cells }) {
  return element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    element("table", {}, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...header.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...cells.map((row) => element("tr", {}, ...row.map((cell, i) => element(i ? "td" : "th", i ? {} : { scope: "row" }, cell)))))));
}

const folded = (title, ...inside) => element("details", {}, element("summary", {}, title), ...inside);

function figureOf(shown) {
  const drawing = element("div", { class: "drawing" });
  drawing.innerHTML = shown.svg ?? ""; // the report's own drawing: every text in it was escaped where it was made
  const tables = [...shown.tables, ...shown.data];
  return element("figure", {}, element("h3", {}, shown.title), shown.subject ? element("p", { class: "source" }, shown.subject) : null, drawing,
    element("figcaption", {}, element("p", {}, shown.caption), shown.source ? element("p", { class: "source" }, shown.source) : null),
    shown.notes.length ? element("ul", {}, ...shown.notes.map((note) => element("li", {}, note))) : null,
    tables.length ? folded("Numbers behind this figure", ...tables.map(tableOf)) : null);
}

/** Figures in sight, those that only check the code folded away, those without trials in one line. */
function figuresOf({ figures }) {
  const absent = figures.filter((each) => !each.svg && !each.notes.length);
  const [plain, checks] = [false, true].map((wanted) => figures.filter((each) => !absent.includes(each) && each.folded === wanted).map(figureOf));
  return [...plain, ...(checks.length ? [folded(`More figures (${checks.length})`, ...checks)] : []),
    ...(absent.length ? [element("p", { class: "small muted" }, `No finished trials for these figures: ${absent.map((each) => each.title).join("; ")}.`)] : [])];
}

/** Which of the stored selections is shown, and the others to choose from. */
function selectionOf({ selections, selected }) {
  const options = selections.map(([id, title]) => element("option", { value: id, selected: id === selected }, title));
  return element("p", {}, element("label", {}, "Trials: ",
    element("select", { id: "selection", disabled: options.length < 2, onchange: (event) => { selection = event.target.value; figures(); } }, ...options)));
}

const figures = latest(async (signal) => {
  const mine = view.study;
  const place = $("figures");
  place.classList.add("waiting");
  place.setAttribute("aria-busy", "true");
  if (drawn.study !== mine) place.replaceChildren(element("p", { class: "muted" }, "Drawing …"));
  try {
    const found = await ask("studies", "figures", { study: mine, selection }, signal);
    drawn = { study: mine, total: found.trials, at: Date.now() };
    place.replaceChildren(selectionOf(found), ...found.notes.map((note) => element("p", { class: "small" }, note)), ...figuresOf(found),
      ...(found.figures.length ? [] : [element("p", {}, "This study has no figures.")]),
      ...(found.failures ? [tableOf(found.failures)] : []),
      folded("What a trial does", ...found.about.map((text) => element("p", {}, text))),
      ...(found.command ? [folded("How to repeat it", element("pre", {}, found.command))] : []),
      folded("Where the numbers come from", element("table", {}, element("tbody", {}, ...found.facts.map(([name, value]) =>
        element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value)))))));
    say(`${found.title}: ${found.figures.length} figures from ${trialsWord(found.shown)}.`);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    if (!(error instanceof Refusal)) throw error;
    drawn = { study: mine, total: total(current()), at: Date.now() };
    place.replaceChildren(element("p", { class: "fails", role: "alert" }, error.message));
  } finally {
    if (!signal.aborted) {
      place.classList.remove("waiting");
      place.removeAttribute("aria-busy");
    }
  }
});

// --- Trials -----------------------------------------------------------------------------------------------------------

const asked = () => ({ study: view.study, filter: view.filter, order: view.order, descending: view.descending === "yes", first: Number(view.first) || 0 });

const rows = latest(async (signal) => {
  const found = await attempt($("filter-error"), () => ask("studies", "trials", asked(), signal));
  $("filter").setAttribute("aria-invalid", $("filter-error").textContent ? "true" : "false");
  if (!found) return;
  const last = found.first + found.rows.length;
  $("count").textContent = found.total ? `${count(found.first + 1)} to ${count(last)} of ${trialsWord(found.total)}` : "No trial meets these conditions.";
  $("before").disabled = found.first === 0;
  $("after").disabled = last >= found.total;
  for (const kind of ["csv", "parquet"]) $(kind).href = fileAddress("studies", "trials", { study: view.study, filter: view.filter, format: kind });
  const [head, body] = $("table").children;
  const focused = document.activeElement?.dataset?.column;
  head.replaceChildren(element("tr", {}, element("th", { scope: "col" }, element("span", { class: "unseen" }, "Open")), ...found.columns.map(heading)));
  if (focused) head.querySelector(`[data-column="${CSS.escape(focused)}"]`)?.focus();
  body.replaceChildren(...found.rows.map((row) => element("tr", {},
    element("td", {}, element("button", { type: "button", "data-trial": row.id, onclick: () => openTrial(row.id) }, "Open")),
    ...row.cells.map((cell, i) => element("td", { class: cell === "failed" ? "failed" : null }, cellText(cell, found.columns[i].name))))));
});

function cellText(value, name) {
  if (value === null || value === undefined) return "–";
  if (name === "finished") return new Date(1000 * value).toISOString().slice(0, 19).replace("T", " ");
  if (typeof value === "boolean") return value ? "yes" : "no";
  return typeof value === "number" ? number(value) : String(value);
}

function heading({ name, kind }) {
  const text = name.replaceAll("_", " ");
  if (kind === "array") return element("th", { scope: "col" }, text);
  const mine = view.order === name;
  const sort = mine ? (view.descending === "yes" ? "descending" : "ascending") : "none";
  return element("th", { scope: "col", "aria-sort": sort }, element("button", { type: "button", "data-column": name, onclick: () => {
    view.descending = mine && view.descending !== "yes" ? "yes" : "no";
    Object.assign(view, { order: name, first: "0" });
    keep();
    rows();
  } }, text));
}

function turn(pages) {
  view.first = String(Math.max(0, (Number(view.first) || 0) + pages * PAGE));
  keep();
  rows();
}

// --- One trial --------------------------------------------------------------------------------------------------------

async function openTrial(id) {
  view.trial = id;
  keep();
  $("trial-body").replaceChildren(element("p", { class: "muted" }, "Reading …"));
  if (!$("trial").open) $("trial").showModal();
  const problem = element("p", { class: "fails" });
  const found = await attempt(problem, () => ask("studies", "trial", { id }));
  if (!found) {
    $("trial-body").replaceChildren(problem);
    return;
  }
  const pairs = (listed) => element("dl", { class: "pairs" }, ...listed.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
  $("trial-body").replaceChildren(
    pairs([...found.point, ["seed", String(found.seed)], ["status", found.status], ["time", found.time]]),
    found.error ? element("pre", { class: "fails" }, found.error) : "",
    found.values.length ? element("h3", {}, "Measured") : "", pairs(found.values),
    ...found.curves.map((curve) => chart(curve, (place) => drawCurve(place, curve))),
    ...found.matrices.map((matrix) => chart(matrix, (place) => drawMatrix(place, matrix))),
    found.others.length ? element("p", { class: "muted" }, `Not drawn, since they have more than two dimensions: ${found.others.join(", ")}.`) : "",
    element("h3", {}, "How to repeat it"), element("pre", {}, found.command));
}

function chart({ name, note }, drawing) {
  const place = element("div", { class: "chart", role: "img", "aria-label": name });
  requestAnimationFrame(() => drawing(place));
  return element("section", {}, element("h3", {}, name), place, note ? element("p", { class: "small muted" }, note) : null);
}

const drawCurve = (place, { x, y, along, name }) => draw(place, [{ x, y, mode: y.length < 60 ? "lines+markers" : "lines", line: { color: "--series-1" } }],
  { xaxis: { title: { text: along } }, yaxis: { title: { text: name } } });

function drawMatrix(place, { z, rows: down, columns, marked }) {
  const signed = z.some((row) => row.some((value) => value < 0));
  const scale = signed ? [[0, "--series-2"], [0.5, "--paper"], [1, "--series-1"]] : [[0, "--paper"], [1, "--series-1"]];
  return draw(place, [{ z, type: "heatmap", colorscale: scale, ...(signed ? { zmid: 0 } : { zmin: 0 }), hovertemplate: `${down} %{y}, ${columns} %{x}: %{z:.4g}<extra></extra>` }], {
    xaxis: { title: { text: columns } }, yaxis: { title: { text: down }, autorange: "reversed" },
    annotations: marked.map((x) => ({ x, yref: "paper", y: 1, yanchor: "bottom", text: `▼${x}`, showarrow: false, font: { color: "--series-2" } })), margin: { t: 24 },
  });
}

// --- Claims -----------------------------------------------------------------------------------------------------------

const verdict = (word) => element("span", { class: `word ${word in VERDICTS ? word : "undecided"}` }, VERDICTS[word] ?? word);
const numbers = (listed) => element("dl", {}, ...listed.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));

async function claims() {
  if (view.claim) return claimPage(view.claim);
  const found = await attempt($("claims-list"), () => ask("studies", "claims", {}));
  if (!found || view.claim) return undefined;
  $("tally").hidden = false;
  $("tally").replaceChildren(...found.tally.map(([word, many]) => element("li", {}, verdict(word), ` ${many} of ${found.claims.length}`)));
  $("claims-list").replaceChildren(...found.claims.map((claim) => element("article", { class: "claim", id: `claim-${claim.id}` },
    element("h3", {}, element("button", { type: "button", class: "link", onclick: () => openClaim(claim.id) }, claim.id), ` ${claim.statement}`),
    element("p", {}, verdict(claim.verdict), element("span", { class: "muted small" }, ` at budget ${claim.budget} · ${claim.source}`)),
    claim.reasons.length ? element("p", { class: "small" }, `${claim.reasons.join("; ")}.`) : null)));
  if (!found.claims.length) $("claims-list").replaceChildren(element("p", {}, "No claim has been decided in this store. To decide them:"), element("pre", {}, `genscope reproduce --budget quick --store ${known.store}`));
  return undefined;
}

function openClaim(id) {
  state.visit();
  view.claim = id;
  keep();
  claims().then(() => { $("claims").scrollIntoView(); $("claims-list").querySelector("button")?.focus(); });
}

/** One claim: statement, verdict, rule, evidence, trials, and what was planted to see it fail. */
async function claimPage(id) {
  const place = $("claims-list");
  $("tally").hidden = true;
  const back = element("button", { type: "button", onclick: () => openClaim("") }, "All claims");
  place.replaceChildren(back, element("p", { class: "muted" }, "Reading …"));
  const problem = element("p", { class: "fails", role: "alert" });
  const claim = await attempt(problem, () => ask("studies", "claim", { id }));
  if (view.claim !== id) return;
  if (!claim) {
    place.replaceChildren(back, problem);
    return;
  }
  place.replaceChildren(back, element("article", { class: "claim", id: `claim-${claim.id}` },
    element("h3", {}, `${claim.id}. ${claim.statement}`),
    element("p", {}, verdict(claim.verdict), element("span", { class: "muted small" }, ` at budget ${claim.budget} · ${claim.source}${claim.time ? ` · ${claim.time}` : ""}`)),
    claim.remark ? element("p", {}, claim.remark) : null,
    claim.erratum ? element("p", { class: "small" }, `Erratum: ${claim.erratum}`) : null,
    element("h4", {}, "Rule, fixed before the data"), element("p", {}, claim.rule),
    claim.changed_rule ? element("p", { class: "small" }, claim.changed_rule) : null,
    ...claim.departures.map((each) => element("p", { class: "small" }, `Departure: ${each}`)),
    element("h4", {}, "Evidence"),
    ...claim.cautions.map((caution) => element("p", { class: "small" }, `Caution: ${caution}.`)),
    ...claim.parts.map((each) => element("div", { class: "part" }, element("p", {}, verdict(each.decision), ` ${each.statement}`), numbers(each.numbers))),
    ...claim.figures.map(figureOf),
    element("h4", {}, "Trials"),
    ...claim.studies.map((study) => element("p", {}, element("button", { type: "button", onclick: () => { state.visit(); tab("studies"); choose(study.name); part("trials"); } }, study.name),
      ` ${study.title}: ${trialsWord(study.ok + study.failed)}${study.failed ? `, ${count(study.failed)} of them failed` : ""}`)),
    element("pre", {}, `${claim.command} --store ${known.store}`),
    element("h4", {}, "Can it fail?"),
    element("p", {}, claim.planted ? `Yes. The rule says “fails” when this fault is planted: ${claim.planted}.` : "The fault that was planted to see it fail is not stored with this verdict.")));
}

function tab(name) {
  view.tab = name;
  for (const each of ["studies", "claims"]) {
    $(each).hidden = each !== name;
    $(`tab-${each}`).setAttribute("aria-selected", String(each === name));
    $(`tab-${each}`).tabIndex = each === name ? 0 : -1;
  }
  keep();
  if (name === "claims") claims();
}

// --- What can be pressed ----------------------------------------------------------------------------------------------

for (const each of ["studies", "claims"]) $(`tab-${each}`).addEventListener("click", () => { if (view.tab !== each) state.visit(); tab(each); });
for (const each of ["figures", "trials"]) $(`tab-${each}`).addEventListener("click", () => { if (view.part !== each) state.visit(); part(each); });
for (const tabs of document.querySelectorAll('[role="tablist"]')) {
  tabs.addEventListener("keydown", (event) => {
    const all = [...tabs.querySelectorAll('[role="tab"]')];
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    next.focus();
    next.click();
  });
}
$("filter").addEventListener("input", debounce(() => {
  Object.assign(view, { filter: $("filter").value.trim(), first: "0" });
  keep();
  rows();
}, 300));
$("before").addEventListener("click", () => turn(-1));
$("after").addEventListener("click", () => turn(1));
$("close").addEventListener("click", () => $("trial").close());
$("trial").addEventListener("close", () => { view.trial = ""; keep(); });

look();
