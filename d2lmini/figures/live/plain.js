// The matrix products without WebAssembly SIMD, with the arguments of those in kernels.js: places are in bytes, strides
// and sizes in floats. `memory` gives all floats.
/** @param {{ floats: Float32Array }} memory */
export function plainProducts(memory) {
  return {
    nn(a, lda, b, ldb, c, ldc, n, k, m) {
      const floats = memory.floats;
      [a, b, c] = [a / 4, b / 4, c / 4];
      for (let i = 0; i < n; i++) {
        const row = c + i * ldc;
        floats.fill(0, row, row + m);
        for (let p = 0; p < k; p++) {
          const x = floats[a + i * lda + p];
          for (let j = 0; j < m; j++) floats[row + j] += x * floats[b + p * ldb + j];
        }
      }
    },
    nt(a, lda, b, ldb, c, ldc, n, k, m) {
      const floats = memory.floats;
      [a, b, c] = [a / 4, b / 4, c / 4];
      for (let i = 0; i < n; i++)
        for (let j = 0; j < m; j++) {
          let sum = 0;
          for (let p = 0; p < k; p++) sum += floats[a + i * lda + p] * floats[b + j * ldb + p];
          floats[c + i * ldc + j] = sum;
        }
    },
    tn(a, lda, b, ldb, c, ldc, n, k, m, add = false) {
      const floats = memory.floats;
      [a, b, c] = [a / 4, b / 4, c / 4];
      for (let i = 0; i < n; i++) {
        const row = c + i * ldc;
        if (!add) floats.fill(0, row, row + m);
        for (let p = 0; p < k; p++) {
          const x = floats[a + p * lda + i];
          for (let j = 0; j < m; j++) floats[row + j] += x * floats[b + p * ldb + j];
        }
      }
    },
  };
}
