/** Gaussian elimination with pivoting, for a few unknowns. */
export function solve(matrix: Float64Array, right: Float64Array): Float64Array {
  const size = right.length;
  const a = Float64Array.from(matrix);
  const b = Float64Array.from(right);
  for (let k = 0; k < size; k++) {
    let pivot = k;
    for (let i = k + 1; i < size; i++) if (Math.abs(a[i * size + k]) > Math.abs(a[pivot * size + k])) pivot = i;
    for (let j = 0; j < size; j++) [a[k * size + j], a[pivot * size + j]] = [a[pivot * size + j], a[k * size + j]];
    [b[k], b[pivot]] = [b[pivot], b[k]];
    for (let i = k + 1; i < size; i++) {
      const factor = a[i * size + k] / a[k * size + k];
      for (let j = k; j < size; j++) a[i * size + j] -= factor * a[k * size + j];
      b[i] -= factor * b[k];
    }
  }
  for (let k = size - 1; k >= 0; k--) {
    for (let j = k + 1; j < size; j++) b[k] -= a[k * size + j] * b[j];
    b[k] /= a[k * size + k];
  }
  return b;
}
