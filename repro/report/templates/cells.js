// Sorts, filters and plots the tables of cells.html, whose text is all that it reads.
"use strict";

const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#785ef0", "#7f7f7f"];
const WIDTH = 560, HEIGHT = 360, LEFT = 64, BOTTOM = 56, TOP = 12, RIGHT = 12;

const isNumber = value => typeof value === "number";
const read = text => text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text.trim();

function compare(first, second) {  // numbers by size, before texts, before nothing
  const rank = value => value === "" ? 2 : isNumber(value) ? 0 : 1;
  if (rank(first) !== rank(second)) return rank(first) - rank(second);
  return isNumber(first) ? first - second : String(first).localeCompare(String(second));
}

function matches(value, asked) {
  const text = asked.trim(), range = text.match(/^(-?[\d.]+)\.\.(-?[\d.]+)$/);
  if (text === "") return true;
  if (range) return isNumber(value) && value >= Number(range[1]) && value <= Number(range[2]);
  if (/^[<>]/.test(text) && text.length > 1)
    return isNumber(value) && (text[0] === "<" ? value < Number(text.slice(1)) : value > Number(text.slice(1)));
  if (text[0] === "=") return String(value) === text.slice(1).trim();
  return String(value).toLowerCase().includes(text.toLowerCase());
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes = {}, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function steps(least, most) {  // about five round numbers
  const rough = (most - least || Math.abs(most) || 1) / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const ticks = [];
  for (let tick = Math.ceil(least / step) * step; tick <= most + step * 1e-9; tick += step) ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

// Where the values of a column lie between two ends, and what stands there: texts side by side, numbers to scale.
function axis(values, from, to) {
  if (values.every(isNumber)) {
    const least = Math.min(...values), most = Math.max(...values), width = most - least || 1;
    const margin = width / 20, scale = value => from + (to - from) * (value - least + margin) / (width + 2 * margin);
    return {scale, ticks: steps(least, most)};
  }
  const names = [...new Set(values)].sort(compare);
  return {scale: value => from + (to - from) * (names.indexOf(value) + 0.5) / names.length, ticks: names};
}

function colouring(values) {
  const names = [...new Set(values)].sort(compare);
  if (names.length <= COLOURS.length) return {names, colour: value => COLOURS[names.indexOf(value)]};
  const place = value => names.indexOf(value) / (names.length - 1);  // many: from blue over grey to orange, by order
  return {names: [names[0], names[Math.floor(names.length / 2)], names.at(-1)],
          colour: value => `color-mix(in oklab, ${COLOURS[0]}, ${COLOURS[4]} ${100 * place(value)}%)`};
}

function plot(rows, column, labels) {
  const shown = rows.filter(row => row[column.x] !== "" && row[column.y] !== "");
  const svg = drawn("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${labels.y} against ${labels.x}, ${shown.length} cells`});
  if (!shown.length) return [element("p", {}, "No cell left has both.")];
  const across = axis(shown.map(row => row[column.x]), LEFT, WIDTH - RIGHT);
  const up = axis(shown.map(row => row[column.y]), HEIGHT - BOTTOM, TOP);
  const tone = colouring(shown.map(row => row[column.colour]));
  for (const tick of across.ticks) {
    const place = across.scale(tick);
    svg.append(drawn("line", {x1: place, x2: place, y1: TOP, y2: HEIGHT - BOTTOM}));
    if (across.ticks.length <= 8) svg.append(drawn("text", {x: place, y: HEIGHT - BOTTOM + 16, "text-anchor": "middle"}, tick));
    else svg.append(drawn("text", {transform: `translate(${place + 3},${HEIGHT - BOTTOM + 8}) rotate(-60)`, "text-anchor": "end"}, tick));
  }
  for (const tick of up.ticks) {
    const place = up.scale(tick);
    svg.append(drawn("line", {x1: LEFT, x2: WIDTH - RIGHT, y1: place, y2: place}));
    svg.append(drawn("text", {x: LEFT - 6, y: place + 4, "text-anchor": "end"}, tick));
  }
  for (const row of shown) {
    const point = drawn("circle", {cx: across.scale(row[column.x]), cy: up.scale(row[column.y]), r: 4, fill: tone.colour(row[column.colour])});
    point.append(drawn("title", {}, row.join(", ")));
    svg.append(point);
  }
  svg.append(drawn("text", {x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4, "text-anchor": "middle"}, labels.x));
  svg.append(drawn("text", {transform: `translate(12,${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle"}, labels.y));
  const legend = element("p", {class: "legend"}, `${labels.colour}: `);
  for (const name of tone.names) {
    const swatch = drawn("svg", {viewBox: "0 0 10 10", width: 10, height: 10, "aria-hidden": "true"});
    swatch.append(drawn("circle", {cx: 5, cy: 5, r: 5, fill: tone.colour(name)}));
    legend.append(element("span", {}, swatch, ` ${name === "" ? "none" : name}`));
  }
  return [svg, legend];
}

function enhance(section) {
  const table = section.querySelector("table"), body = table.tBodies[0], head = table.tHead.rows[0];
  const names = [...head.cells].map(cell => cell.textContent);
  const rows = [...body.rows].map(row => ({row, values: [...row.cells].map(cell => read(cell.textContent))}));
  const filters = names.map(name => element("input", {"aria-label": `filter ${name}`, size: 6}));
  table.tHead.append(element("tr", {}, ...filters.map(filter => element("td", {}, filter))));
  const choose = (label, first) => {
    const select = element("select", {}, ...names.map(name => element("option", {}, name)));
    select.selectedIndex = Math.max(0, names.indexOf(first));
    return [element("label", {}, `${label} `, select), select];
  };
  const measured = names.includes("linear") ? "linear" : names.find((name, column) => column > 6 && rows.some(({values}) => isNumber(values[column])));
  const controls = {x: choose("x", names[0]), y: choose("y", measured), colour: choose("colour", "preset")};
  const figure = element("div", {}), count = element("p", {"aria-live": "polite"});
  section.querySelector(".plot").append(element("p", {class: "controls"}, ...Object.values(controls).map(([label]) => label)), figure, count);

  const redraw = () => {
    const left = rows.filter(({row, values}) => !(row.hidden = !filters.every((filter, column) => matches(values[column], filter.value))));
    const column = {}, labels = {};
    for (const [role, [, select]] of Object.entries(controls)) {
      column[role] = select.selectedIndex;
      labels[role] = names[select.selectedIndex];
    }
    figure.replaceChildren(...plot(left.map(({values}) => values), column, labels));
    count.textContent = `${left.length} of ${rows.length} cells`;
  };
  head.querySelectorAll("th").forEach((cell, column) => {
    const button = element("button", {type: "button"}, names[column]);
    cell.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      head.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((first, second) => (down ? -1 : 1) * compare(first.values[column], second.values[column]));
      body.append(...rows.map(({row}) => row));
    });
  });
  for (const input of [...filters, ...Object.values(controls).map(([, select]) => select)]) input.addEventListener("input", redraw);
  redraw();
}

document.addEventListener("DOMContentLoaded", () => document.querySelectorAll("section.cells").forEach(enhance));
