// Sorts, filters and plots each table of cells.html, from the text of its rows alone.
"use strict";

const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#785ef0", "#7f7f7f"];
const HEIGHT = 360, LEFT = 80, BOTTOM = 80, TOP = 12, RIGHT = 16;  // pixels, as is the width that a plot is given

const isNumber = value => typeof value === "number";
const read = text => text !== "" && Number.isFinite(Number(text)) ? Number(text) : text;

function compare(first, second, sign = 1) {  // numbers by size, then texts, and nothing last in either direction
  const rank = value => value === "" ? 2 : isNumber(value) ? 0 : 1;
  if (rank(first) !== rank(second)) return rank(first) - rank(second);
  return sign * (isNumber(first) ? first - second : first.localeCompare(second));
}

function matches(value, asked) {
  const range = asked.match(/^(-?[\d.]+)\.\.(-?[\d.]+)$/), bound = Number(asked.slice(1));
  if (range) return isNumber(value) && value >= Number(range[1]) && value <= Number(range[2]);
  if (asked[0] === "<") return isNumber(value) && value < bound;
  if (asked[0] === ">") return isNumber(value) && value > bound;
  if (asked[0] === "=") return String(value) === asked.slice(1);
  return String(value).toLowerCase().includes(asked.toLowerCase());
}

function html(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function roundNumbers(least, most) {  // about five of them
  if (least === most) return [least];
  const rough = (most - least) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const first = Math.ceil(least / step - 1e-9), count = Math.floor(most / step + 1e-9) - first + 1;
  return Array.from({length: count}, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

// Where values of a column lie between two ends, and its ticks: numbers to scale, anything else side by side.
function axis(values, from, to) {
  if (values.every(isNumber)) {
    const least = Math.min(...values), most = Math.max(...values), margin = (most - least || 1) / 20;
    const place = value => from + (to - from) * (value - least + margin) / (most - least + 2 * margin);
    return {place, ticks: roundNumbers(least, most)};
  }
  const names = [...new Set(values)].sort(compare);
  return {place: value => from + (to - from) * (names.indexOf(value) + 0.5) / names.length, ticks: names};
}

function colouring(values) {
  const names = [...new Set(values)].sort(compare), last = names.length - 1;
  if (last < COLOURS.length) return {legend: names, colour: value => COLOURS[names.indexOf(value)]};
  const share = value => 100 * names.indexOf(value) / last;  // too many to tell apart: by rank, from blue to orange
  const colour = value => `color-mix(in oklab, ${COLOURS[0]}, ${COLOURS[4]} ${share(value)}%)`;
  return {legend: [names[0], names[Math.round(last / 2)], names[last]], colour};
}

// The plot of rows, each an object by column, and its legend.
function plot(all, {x, y, colour: by}, width) {
  const rows = all.filter(row => row[x] !== "" && row[y] !== "");
  if (!rows.length) return [html("p", {}, `No cell that is left has both ${x} and ${y}.`)];
  const across = axis(rows.map(row => row[x]), LEFT, width - RIGHT);
  const up = axis(rows.map(row => row[y]), HEIGHT - BOTTOM, TOP);
  const {legend, colour} = colouring(rows.map(row => row[by]));
  const label = `${y} against ${x}, ${rows.length} cells`;
  const picture = svg("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, width, role: "img", "aria-label": label});
  const crowded = 7 * (across.ticks.join("").length + 2 * across.ticks.length) > width - LEFT - RIGHT;
  const short = (tick, most) => String(tick).length > most ? `${String(tick).slice(0, most - 1)}…` : String(tick);
  for (const tick of across.ticks) {
    const at = across.place(tick), below = HEIGHT - BOTTOM + 14;
    const turned = crowded ? {transform: `translate(${at + 4},${below}) rotate(-35)`, "text-anchor": "end"}
                           : {transform: `translate(${at},${below})`, "text-anchor": "middle"};
    picture.append(svg("line", {x1: at, x2: at, y1: TOP, y2: HEIGHT - BOTTOM}));
    picture.append(svg("text", turned, short(tick, crowded ? 12 : 70)));
  }
  for (const tick of up.ticks) {
    const at = up.place(tick);
    picture.append(svg("line", {x1: LEFT, x2: width - RIGHT, y1: at, y2: at}));
    picture.append(svg("text", {x: LEFT - 6, y: at + 4, "text-anchor": "end"}, short(tick, 8)));
  }
  for (const row of rows) {
    const told = Object.entries(row).filter(([, value]) => value !== "").map(([name, value]) => `${name} ${value}`);
    const point = {cx: across.place(row[x]), cy: up.place(row[y]), r: 4.5, fill: colour(row[by])};
    picture.append(svg("circle", point, svg("title", {}, told.join("\n"))));
  }
  const middle = {"text-anchor": "middle"}, centre = (TOP + HEIGHT - BOTTOM) / 2;
  picture.append(svg("text", {x: (LEFT + width - RIGHT) / 2, y: HEIGHT - (crowded ? 4 : 40), ...middle}, x));
  picture.append(svg("text", {transform: `translate(14,${centre}) rotate(-90)`, ...middle}, y));
  const keys = legend.map(value => {
    const swatch = svg("svg", {width: 10, height: 10}, svg("circle", {cx: 5, cy: 5, r: 5, fill: colour(value)}));
    return html("span", {}, swatch, ` ${value === "" ? "none" : value}`);
  });
  return [picture, html("p", {class: "legend"}, `${by}: `, ...keys)];
}

function enhance(section) {
  const table = section.querySelector("table"), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const names = heads.map(head => head.textContent);
  const values = line => names.map((name, column) => [name, read(line.cells[column].textContent)]);
  const cells = [...body.rows].map(line => ({line, row: Object.fromEntries(values(line))}));
  const filters = names.map(name => html("input", {"aria-label": `filter ${name}`, size: 6}));
  const measure = names.includes("linear") ? "linear" : names[5];  // where measures begin
  const roles = {x: names[0], y: measure, colour: "dataset"};
  const selects = Object.entries(roles).map(([role, first]) => {
    const options = names.map(name => html("option", name === first ? {selected: ""} : {}, name));
    return html("select", {name: role}, ...options);
  });
  const figure = html("div", {class: "plot"}), count = html("p", {"aria-live": "polite"});

  function redraw() {
    const asked = filters.map(filter => filter.value.trim()), chosen = selects.map(({name, value}) => [name, value]);
    for (const {line, row} of cells) line.hidden = !names.every((name, column) => matches(row[name], asked[column]));
    const left = cells.filter(({line}) => !line.hidden).map(({row}) => row);
    figure.replaceChildren(...plot(left, Object.fromEntries(chosen), Math.min(560, section.clientWidth)));
    count.textContent = `${left.length} of ${cells.length} cells`;
  }

  function sort(head, name) {
    const descending = head.ariaSort === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.ariaSort = descending ? "descending" : "ascending";
    cells.sort((first, second) => compare(first.row[name], second.row[name], descending ? -1 : 1));
    body.append(...cells.map(({line}) => line));
  }

  heads.forEach((head, column) => {
    const button = html("button", {type: "button"}, names[column]);
    button.addEventListener("click", () => sort(head, names[column]));
    head.replaceChildren(button);
  });
  for (const input of [...filters, ...selects]) input.addEventListener("input", redraw);
  table.tHead.append(html("tr", {}, ...filters.map(filter => html("td", {}, filter))));
  const labels = selects.map(select => html("label", {}, `${select.name} `, select));
  const hint = "A column’s name sorts. The box below it filters: CE keeps what contains it, =CE what is it; " +
               ">80, <0.2 and 1..3 are bounds of numbers.";
  const controls = html("p", {class: "controls"}, ...labels);
  table.parentElement.before(controls, figure, html("p", {class: "note"}, hint), count);
  redraw();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("section.cells").forEach(enhance));
