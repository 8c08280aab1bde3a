// Curves of a few pixels.

export interface Point {
  x: number;
  y: number;
}

/// At most `most` points: of each piece of the curve its least and its greatest value, so that no spike is lost.
export function thinOut(points: Point[], most: number): Point[] {
  if (points.length <= most || most < 4) return points;
  const pieces = Math.floor(most / 2);
  const found: Point[] = [];
  for (let piece = 0; piece < pieces; ++piece) {
    const begin = Math.floor((piece * points.length) / pieces);
    const end = Math.floor(((piece + 1) * points.length) / pieces);
    let least = begin;
    let greatest = begin;
    for (let index = begin; index < end; ++index) {
      if (points[index]!.y < points[least]!.y) least = index;
      if (points[index]!.y > points[greatest]!.y) greatest = index;
    }
    found.push(points[Math.min(least, greatest)]!);
    if (least !== greatest) found.push(points[Math.max(least, greatest)]!);
  }
  return found;
}

export interface Scale {
  least: number;
  greatest: number;
}

export function scaleOf(values: number[], fromZero: boolean): Scale {
  let least = fromZero ? 0 : Infinity;
  let greatest = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  if (greatest === -Infinity) return { least: 0, greatest: 1 };
  if (greatest - least < 1e-12) return { least: fromZero ? 0 : least - 1, greatest: greatest + (greatest === 0 || !fromZero ? 1 : 0) };
  return { least, greatest };
}

/// The path of an SVG; values that are no number leave a gap.
export function pathOf(points: Point[], width: number, height: number, scale: Scale): string {
  const finite = points.filter((one) => Number.isFinite(one.y));
  if (finite.length === 0) return "";
  const first = points[0]!.x;
  const span = Math.max(1e-12, points[points.length - 1]!.x - first);
  let path = "";
  let isOpen = false;
  for (const one of points) {
    if (!Number.isFinite(one.y)) {
      isOpen = false;
      continue;
    }
    const x = ((one.x - first) / span) * width;
    const y = height - ((one.y - scale.least) / (scale.greatest - scale.least)) * height;
    path += `${isOpen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    isOpen = true;
  }
  return path;
}

/// The running mean of the values, the past weighing `weight` (0: none, and the values stay; towards 1: more), and
/// corrected for its beginning. Values that are no number stay, and are passed over.
export function smooth(points: Point[], weight: number): Point[] {
  if (weight <= 0) return points;
  let mean = 0;
  let known = 0;
  return points.map((one) => {
    if (!Number.isFinite(one.y)) return one;
    mean = weight * mean + (1 - weight) * one.y;
    known = weight * known + (1 - weight);
    return { x: one.x, y: mean / known };
  });
}

/// For a logarithmic axis: what is not positive has no place there.
export function toLog(points: Point[]): Point[] {
  return points.map((one) => ({ x: one.x, y: one.y > 0 ? Math.log10(one.y) : NaN }));
}

/// At most `most` round numbers within a scale: multiples of 1, 2 or 5 times a power of ten.
export function roundTicks({ least, greatest }: Scale, most: number): number[] {
  const span = greatest - least;
  if (!(span > 0) || most < 1) return [];
  const power = Math.floor(Math.log10(span / most));
  for (const factor of [1, 2, 5, 10, 20, 50]) {
    // Whole numbers and one division: 3 * 0.1 is not 0.3.
    const place = (index: number) => (power < 0 ? (index * factor) / 10 ** -power : index * factor * 10 ** power);
    const first = Math.ceil(least / place(1) - 1e-9);
    const last = Math.floor(greatest / place(1) + 1e-9);
    if (last - first < most) return Array.from({ length: last - first + 1 }, (_, index) => place(first + index));
  }
  return [];
}

/// The same for an axis of logarithms to base 10: round are the numbers that they stand for.
export function roundLogTicks({ least, greatest }: Scale, most: number): number[] {
  const places = [];
  for (let power = Math.floor(least); power <= greatest; ++power) places.push(power);
  const within = (values: number[]) => values.filter((one) => one >= least - 1e-9 && one <= greatest + 1e-9);
  const fine = within(places.flatMap((power) => [1, 2, 5].map((one) => power + Math.log10(one))));
  if (greatest - least < 1) return roundTicks({ least: 10 ** least, greatest: 10 ** greatest }, most).map(Math.log10);
  if (fine.length <= most) return fine;
  const powers = within(places);
  return powers.filter((_, index) => index % Math.ceil(powers.length / most) === 0);
}
