/** Fourier transforms of length 2ᵃ·3ᵇ·5ᶜ. */

const tables = new Map<number, { cos: Float64Array; sin: Float64Array }>();

function table(size: number): { cos: Float64Array; sin: Float64Array } {
  let found = tables.get(size);
  if (!found) {
    const cos = new Float64Array(size);
    const sin = new Float64Array(size);
    for (let i = 0; i < size; i++) {
      cos[i] = Math.cos((2 * Math.PI * i) / size);
      sin[i] = -Math.sin((2 * Math.PI * i) / size);
    }
    found = { cos, sin };
    tables.set(size, found);
  }
  return found;
}

export interface Complex {
  readonly re: Float64Array;
  readonly im: Float64Array;
}

/** Return the transform of a complex signal. */
export function fft(signal: Complex): Complex {
  const size = signal.re.length;
  const out = { re: new Float64Array(size), im: new Float64Array(size) };
  const { cos, sin } = table(size);
  const partRe = new Float64Array(5);
  const partIm = new Float64Array(5);

  function transform(n: number, from: number, stride: number, to: number): void {
    if (n === 1) {
      out.re[to] = signal.re[from];
      out.im[to] = signal.im[from];
      return;
    }
    const radix = n % 2 === 0 ? 2 : n % 3 === 0 ? 3 : n % 5 === 0 ? 5 : 0;
    if (radix === 0) throw new RangeError(`a transform of length ${size} is not supported`);
    const m = n / radix;
    for (let k = 0; k < radix; k++) transform(m, from + k * stride, stride * radix, to + k * m);
    const turn = size / n; // table steps per 1/n of a turn
    for (let j = 0; j < m; j++) {
      for (let k = 0; k < radix; k++) {
        const at = to + k * m + j;
        const c = cos[j * k * turn];
        const s = sin[j * k * turn];
        partRe[k] = out.re[at] * c - out.im[at] * s;
        partIm[k] = out.re[at] * s + out.im[at] * c;
      }
      for (let q = 0; q < radix; q++) {
        let re = partRe[0];
        let im = partIm[0];
        for (let k = 1; k < radix; k++) {
          const at = ((k * q) % radix) * m * turn;
          re += partRe[k] * cos[at] - partIm[k] * sin[at];
          im += partRe[k] * sin[at] + partIm[k] * cos[at];
        }
        out.re[to + q * m + j] = re;
        out.im[to + q * m + j] = im;
      }
    }
  }

  transform(size, 0, 1, 0);
  return out;
}

/** Return the first size/2 + 1 values of the transform of a real signal, padded with zeros to `size`. */
export function rfft(values: Float64Array, size: number): Complex {
  const re = new Float64Array(size);
  re.set(values.subarray(0, size));
  const whole = fft({ re, im: new Float64Array(size) });
  const count = (size >> 1) + 1;
  return { re: whole.re.slice(0, count), im: whole.im.slice(0, count) };
}

/** Return the real signal of length `size` whose transform starts with `half`. */
export function irfft(half: Complex, size: number): Float64Array {
  const re = new Float64Array(size);
  const im = new Float64Array(size);
  const count = (size >> 1) + 1;
  for (let i = 0; i < count; i++) {
    re[i] = half.re[i];
    im[i] = -half.im[i]; // conjugation gives the inverse by a forward transform
    if (i > 0 && i < size - i) {
      re[size - i] = half.re[i];
      im[size - i] = half.im[i];
    }
  }
  const out = fft({ re, im }).re;
  for (let i = 0; i < size; i++) out[i] /= size;
  return out;
}
