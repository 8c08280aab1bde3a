// Numbers as people read them.

const none = "–";

export function formatNumber(value: number | null | undefined, digits = 3): string {
  if (value === null || value === undefined) return none;
  if (!Number.isFinite(value)) return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size !== 0 && size < 1e-4) return value.toExponential(digits - 1);
  return Number(value.toPrecision(digits)).toString();
}

/// Bytes in binary units: 1536 -> "1.5 KiB".
export function formatBytes(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return none;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  let rest = value;
  while (Math.abs(rest) >= 1024 && unit + 1 < units.length) {
    rest /= 1024;
    ++unit;
  }
  const shown = unit === 0 || Math.abs(rest) >= 100 ? Math.round(rest).toString() : rest.toFixed(1);
  return `${shown} ${units[unit]}`;
}

/// Seconds in the unit that suits them: 0.0023 -> "2.3 ms".
export function formatSeconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return none;
  const size = Math.abs(value);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${Number((value * 1e6).toPrecision(3))} µs`;
  if (size < 1) return `${Number((value * 1e3).toPrecision(3))} ms`;
  if (size < 60) return `${Number(value.toPrecision(3))} s`;
  const seconds = Math.round(value);
  const minutes = Math.floor(seconds / 60);
  const two = (part: number) => String(part).padStart(2, "0");
  if (minutes < 60) return `${minutes}:${two(seconds % 60)} min`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)} h`;
}

/// A part of one as percent.
export function formatPercent(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return none;
  return `${(value * 100).toFixed(1)} %`;
}

/// How long ago something was, both in milliseconds of Unix time.
export function formatAge(nowMs: number, thenMs: number): string {
  return formatSeconds(Math.max(0, Math.round((nowMs - thenMs) / 100) / 10));
}

/// The time of day, of this machine.
export function formatClock(ms: number): string {
  const at = new Date(ms);
  const two = (part: number) => String(part).padStart(2, "0");
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}
