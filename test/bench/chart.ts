// SPDX-License-Identifier: Apache-2.0
import { type Axis, linearAxis, logAxis } from "./axis.ts";
import { formatNumber } from "./number-format.ts";

export interface Series {
  readonly name: string;
  /** One for each group; undefined where nothing was measured. */
  readonly values: readonly (number | undefined)[];
  readonly dashed?: boolean;
}

export interface Chart {
  readonly title: string;
  /** Along the bottom. */
  readonly groups: readonly string[];
  readonly groupTitle: string;
  /** What the values are, with their unit. */
  readonly valueTitle: string;
  readonly series: readonly Series[];
  /** Logarithmic values must be positive. */
  readonly scale: "linear" | "log";
  /** A line across: what is to be reached. */
  readonly limit?: { readonly value: number; readonly name: string };
}

const WIDTH = 760;
const HEIGHT = 420;
const FRAME = { left: 70, right: 740, top: 76, bottom: 366 };
/** Okabe and Ito's, which people see apart however they see colours. */
const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const INK = "#333333";
const FAINT = "#d9d9d9";

/** An SVG document in which each series is a line through its groups. Throws RangeError for no values. */
export function lineChart(chart: Chart): string {
  const axis = axisOf(chart);
  const marks = chart.series.map(({ values, dashed }, i) => {
    const colour = colourOf(i);
    const points = values.flatMap((value, group) =>
      value === undefined ? [] : [{ x: centreOf(chart, group), y: heightOf(axis, value) }],
    );
    const path = points.map(({ x, y }) => `${round(x)},${round(y)}`).join(" ");
    const dash = dashed === true ? ` stroke-dasharray="5 4"` : "";
    const line = `<polyline points="${path}" fill="none" stroke="${colour}" stroke-width="2"${dash}/>`;
    const dots = points.map(
      ({ x, y }) => `<circle cx="${round(x)}" cy="${round(y)}" r="3" fill="${colour}"/>`,
    );
    return [line, ...dots].join("\n");
  });
  return document(chart, axis, marks);
}

/** An SVG document in which each group has a bar for each series, with its value on top. Throws RangeError for no values. */
export function barChart(chart: Chart): string {
  const axis = axisOf(chart);
  const slot = groupWidth(chart) / (chart.series.length + 1);
  const marks = chart.series.flatMap(({ values }, i) =>
    values.flatMap((value, group) => {
      if (value === undefined) return [];
      const left = FRAME.left + group * groupWidth(chart) + slot * (i + 0.5);
      const top = heightOf(axis, value);
      const size = `width="${round(slot * 0.9)}" height="${round(FRAME.bottom - top)}"`;
      const bar = `<rect x="${round(left)}" y="${round(top)}" ${size} fill="${colourOf(i)}"/>`;
      return [bar, label(left + slot * 0.45, top - 5, formatNumber(value), { anchor: "middle", size: 11 })];
    }),
  );
  return document(chart, axis, marks);
}

function axisOf({ series, scale, limit }: Chart): Axis {
  const values = [...series.flatMap((one) => one.values), limit?.value].filter((v) => v !== undefined);
  if (values.length === 0) throw new RangeError("there is nothing to draw");
  const [least, most] = [Math.min(...values), Math.max(...values)];
  // A bar has its value on top.
  return scale === "log" ? logAxis(least, most) : linearAxis(most * 1.05);
}

function document(chart: Chart, axis: Axis, marks: readonly string[]): string {
  const services = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" role="img">`,
    `<title>${escaped(chart.title)}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    label(FRAME.left, 24, chart.title, { anchor: "start", size: 16 }),
    ...legend(chart),
    ...valueAxis(chart, axis),
    ...groupAxis(chart),
    ...marks,
    ...limitLine(chart, axis),
    "</svg>",
  ];
  return `${services.join("\n")}\n`;
}

/** Sans-serif letters of 12 pixels are 7 wide, more or less. */
function legend({ series }: Chart): readonly string[] {
  let x = FRAME.left;
  return series.flatMap(({ name }, i) => {
    const left = x;
    x += 26 + name.length * 7;
    const swatch = `<rect x="${left}" y="42" width="12" height="12" fill="${colourOf(i)}"/>`;
    return [swatch, label(left + 17, 52, name, { anchor: "start", size: 12 })];
  });
}

function valueAxis({ valueTitle }: Chart, axis: Axis): readonly string[] {
  const ticks = axis.ticks.flatMap((tick) => {
    const y = round(heightOf(axis, tick));
    const rule = `<line x1="${FRAME.left}" x2="${FRAME.right}" y1="${y}" y2="${y}" stroke="${FAINT}"/>`;
    return [rule, label(FRAME.left - 8, y + 4, tickText(tick), { anchor: "end", size: 11 })];
  });
  const middle = (FRAME.top + FRAME.bottom) / 2;
  const turned = ` transform="rotate(-90 16 ${middle})"`;
  return [...ticks, label(16, middle, valueTitle, { anchor: "middle", size: 12, more: turned })];
}

function groupAxis(chart: Chart): readonly string[] {
  const y = FRAME.bottom + 18;
  const names = chart.groups.map((name, i) =>
    label(centreOf(chart, i), y, name, { anchor: "middle", size: 12 }),
  );
  const middle = (FRAME.left + FRAME.right) / 2;
  return [...names, label(middle, HEIGHT - 10, chart.groupTitle, { anchor: "middle", size: 12 })];
}

function limitLine({ limit }: Chart, axis: Axis): readonly string[] {
  if (limit === undefined) return [];
  const y = round(heightOf(axis, limit.value));
  const line = `<line x1="${FRAME.left}" x2="${FRAME.right}" y1="${y}" y2="${y}" stroke="${INK}" stroke-dasharray="2 3"/>`;
  return [line, label(FRAME.right, y - 4, limit.name, { anchor: "end", size: 11 })];
}

function label(
  x: number,
  y: number,
  text: string,
  how: { anchor: "start" | "middle" | "end"; size: number; more?: string },
): string {
  const place = `x="${round(x)}" y="${round(y)}" text-anchor="${how.anchor}" font-size="${how.size}"`;
  return `<text ${place} fill="${INK}"${how.more ?? ""}>${escaped(text)}</text>`;
}

function groupWidth({ groups }: Chart): number {
  return (FRAME.right - FRAME.left) / groups.length;
}

function centreOf(chart: Chart, group: number): number {
  return FRAME.left + (group + 0.5) * groupWidth(chart);
}

function heightOf(axis: Axis, value: number): number {
  return FRAME.bottom - axis.at(value) * (FRAME.bottom - FRAME.top);
}

function colourOf(series: number): string {
  return COLOURS[series % COLOURS.length] ?? INK;
}

function tickText(tick: number): string {
  return tick.toLocaleString("en-US", { maximumSignificantDigits: 3 });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
