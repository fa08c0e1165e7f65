/** Array functions shared by several modules. */

export const sum = (values: ArrayLike<number>): number => {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i];
  return total;
};

export const mean = (values: ArrayLike<number>): number => sum(values) / values.length;

export const clip = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high);

export const any = (flags: Uint8Array): boolean => flags.includes(1);

export const all = (flags: Uint8Array): boolean => !flags.includes(0);

/** Median as in numpy: the mean of the two middle values for an even count. */
export function median(values: ArrayLike<number>): number {
  const sorted = Float64Array.from(values).sort();
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** Column `index` of values (T,count). */
export function column(values: Float64Array, count: number, index: number): Float64Array {
  const out = new Float64Array(values.length / count);
  for (let i = 0; i < out.length; i++) out[i] = values[i * count + index];
  return out;
}

/** Linear interpolation in an increasing table, constant beyond the ends, as numpy.interp. */
export function interp(at: number, x: ArrayLike<number>, y: ArrayLike<number>): number {
  const last = x.length - 1;
  if (at <= x[0]) return y[0];
  if (at >= x[last]) return y[last];
  const right = searchSorted(x, at);
  if (x[right] === at) return y[right];
  const share = (at - x[right - 1]) / (x[right] - x[right - 1]);
  return y[right - 1] + share * (y[right] - y[right - 1]);
}

/** Return the first index whose value is not below `at`. */
export function searchSorted(x: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Round half to even, as numpy.rint and Python's round do. */
export function rint(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
