// The last minutes, to go back in. Parts that did not change are shared by frames.

export interface Kept<T> {
  at_ms: number;
  value: T;
  size: number;
}

export class History<T> {
  private kept: Kept<T>[] = [];
  private size = 0;

  /// Keeps at most `maxAgeMs`, and less where the sizes of its values add up to more than `maxSize`.
  constructor(private readonly maxAgeMs: number, private readonly maxSize: number) {}

  add(at_ms: number, value: T, size: number): void {
    const last = this.kept[this.kept.length - 1];
    if (last && last.at_ms >= at_ms) return;
    this.kept.push({ at_ms, value, size });
    this.size += size;
    let stale = 0;
    while (stale + 1 < this.kept.length && (at_ms - this.kept[stale]!.at_ms > this.maxAgeMs || this.size > this.maxSize)) {
      this.size -= this.kept[stale]!.size;
      ++stale;
    }
    if (stale > 0) this.kept.splice(0, stale);
  }

  get length(): number {
    return this.kept.length;
  }
  get newest(): T | null {
    return this.kept[this.kept.length - 1]?.value ?? null;
  }
  get oldestMs(): number | null {
    return this.kept[0]?.at_ms ?? null;
  }
  get newestMs(): number | null {
    return this.kept[this.kept.length - 1]?.at_ms ?? null;
  }

  /// The newest value that is not younger than `at_ms`; the oldest one if all are.
  at(at_ms: number): T | null {
    let low = 0;
    let high = this.kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.kept[middle]!.at_ms <= at_ms) low = middle + 1;
      else high = middle;
    }
    return this.kept[Math.max(0, low - 1)]?.value ?? null;
  }
}
