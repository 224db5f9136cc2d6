/* Something to compile: hashing, encoding, compressing, sorting, matching, parsing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { uint32_t h[8]; uint64_t length; uint8_t block[64]; size_t filled; } Sha256;

static const uint32_t K[64] = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void sha256_block(Sha256 *s, const uint8_t *p) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)p[4 * i] << 24 | p[4 * i + 1] << 16 | p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t b = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(v, s->h, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t e = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
    uint32_t one = v[7] + e + ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
    uint32_t a = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
    uint32_t two = a + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += one;
    v[0] = one + two;
  }
  for (int i = 0; i < 8; i++) s->h[i] += v[i];
}

void sha256_add(Sha256 *s, const uint8_t *data, size_t n) {
  s->length += n;
  while (n--) {
    s->block[s->filled++] = *data++;
    if (s->filled == 64) { sha256_block(s, s->block); s->filled = 0; }
  }
}

void sha256_end(Sha256 *s, uint8_t *out) {
  uint64_t bits = 8 * s->length;
  uint8_t end = 0x80, zero = 0;
  sha256_add(s, &end, 1);
  while (s->filled != 56) sha256_add(s, &zero, 1);
  for (int i = 7; i >= 0; i--) { uint8_t b = bits >> 8 * i; sha256_add(s, &b, 1); }
  for (int i = 0; i < 32; i++) out[i] = s->h[i / 4] >> (24 - 8 * (i % 4));
}

size_t base64(const uint8_t *in, size_t n, char *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  size_t at = 0;
  for (size_t i = 0; i < n; i += 3) {
    uint32_t v = in[i] << 16 | (i + 1 < n ? in[i + 1] << 8 : 0) | (i + 2 < n ? in[i + 2] : 0);
    out[at++] = digits[v >> 18];
    out[at++] = digits[v >> 12 & 63];
    out[at++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
    out[at++] = i + 2 < n ? digits[v & 63] : '=';
  }
  out[at] = 0;
  return at;
}

size_t compress_lz(const uint8_t *in, size_t n, uint8_t *out) {
  size_t at = 0, i = 0;
  while (i < n) {
    size_t best = 0, from = 0;
    for (size_t j = i > 4095 ? i - 4095 : 0; j < i; j++) {
      size_t k = 0;
      while (k < 18 && i + k < n && in[j + k] == in[i + k]) k++;
      if (k > best) { best = k; from = i - j; }
    }
    if (best > 2) {
      out[at++] = 0x80 | (best - 3) << 3 | from >> 9;
      out[at++] = from >> 1;
      i += best;
    } else out[at++] = in[i++] & 0x7f;
  }
  return at;
}

int matches(const char *pattern, const char *text) {
  if (*pattern == 0) return *text == 0;
  if (pattern[1] == '*') {
    do if (matches(pattern + 2, text)) return 1;
    while (*text && (*pattern == '.' || *pattern == *text) && text++);
    return 0;
  }
  return *text && (*pattern == '.' || *pattern == *text) && matches(pattern + 1, text + 1);
}

void sort(double *a, long n) {
  if (n < 12) {
    for (long i = 1; i < n; i++)
      for (long j = i; j > 0 && a[j] < a[j - 1]; j--) { double t = a[j]; a[j] = a[j - 1]; a[j - 1] = t; }
    return;
  }
  double middle = a[n / 2];
  long i = 0, j = n - 1;
  while (i <= j) {
    while (a[i] < middle) i++;
    while (a[j] > middle) j--;
    if (i <= j) { double t = a[i]; a[i++] = a[j]; a[j--] = t; }
  }
  sort(a, j + 1);
  sort(a + i, n - i);
}

typedef struct { const char *at; int wrong; } Parser;

static double sum(Parser *p);

static double factor(Parser *p) {
  while (*p->at == ' ') p->at++;
  if (*p->at == '-') { p->at++; return -factor(p); }
  if (*p->at == '(') {
    p->at++;
    double v = sum(p);
    if (*p->at == ')') p->at++; else p->wrong = 1;
    return v;
  }
  char *end;
  double v = strtod(p->at, &end);
  if (end == p->at) p->wrong = 1;
  p->at = end;
  return v;
}

static double product(Parser *p) {
  double v = factor(p);
  for (;;) switch (*p->at) {
    case ' ': p->at++; break;
    case '*': p->at++; v *= factor(p); break;
    case '/': p->at++; v /= factor(p); break;
    case '%': { p->at++; long by = (long)factor(p); if (by) v = (long)v % by; else p->wrong = 1; break; }
    default: return v;
  }
}

static double sum(Parser *p) {
  double v = product(p);
  for (;;) switch (*p->at) {
    case ' ': p->at++; break;
    case '+': p->at++; v += product(p); break;
    case '-': p->at++; v -= product(p); break;
    default: return v;
  }
}

int evaluate(const char *text, double *value) {
  Parser p = {text, 0};
  *value = sum(&p);
  return !p.wrong && *p.at == 0;
}

void life(uint8_t *grid, int w, int h) {
  uint8_t *old = malloc(w * h);
  memcpy(old, grid, w * h);
  for (int y = 0; y < h; y++)
    for (int x = 0; x < w; x++) {
      int n = 0;
      for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
          if (dx || dy) n += old[(y + dy + h) % h * w + (x + dx + w) % w];
      grid[y * w + x] = n == 3 || (n == 2 && old[y * w + x]);
    }
  free(old);
}

void multiply(const double *a, const double *b, double *c, int n) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      double s = 0;
      for (int k = 0; k < n; k++) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] = s;
    }
}
