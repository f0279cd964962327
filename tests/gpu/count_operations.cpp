/* Counts the floating-point operations of kernel bodies: the same sources, compiled with a number type that counts. One
 * operation is one of + - * / sqrt; comparisons, negations and copies are free. The layout of the class is that of a
 * float, so the state of a real simulation can be given to it. */
#include <cmath>
#include <cstdint>

static int64_t operations;

struct counted_real {
  float value;
  counted_real() = default;
  counted_real(float v) : value(v) {}
  counted_real(double v) : value((float)v) {}
  counted_real(int v) : value((float)v) {}
  explicit operator float() const { return value; }
  explicit operator double() const { return value; }
  explicit operator int32_t() const { return (int32_t)value; }
  explicit operator uint64_t() const { return (uint64_t)value; }
};
typedef counted_real cr;
static inline cr operator+(cr a, cr b) {
  return ++operations, cr(a.value + b.value);
}
static inline cr operator-(cr a, cr b) {
  return ++operations, cr(a.value - b.value);
}
static inline cr operator*(cr a, cr b) {
  return ++operations, cr(a.value * b.value);
}
static inline cr operator/(cr a, cr b) {
  return ++operations, cr(a.value / b.value);
}
static inline cr operator-(cr a) {
  return cr(-a.value);
}
static inline cr &operator+=(cr &a, cr b) {
  return ++operations, a.value += b.value, a;
}
static inline bool operator<(cr a, cr b) {
  return a.value < b.value;
}
static inline bool operator>(cr a, cr b) {
  return a.value > b.value;
}
static inline bool operator<=(cr a, cr b) {
  return a.value <= b.value;
}
static inline bool operator>=(cr a, cr b) {
  return a.value >= b.value;
}
static inline bool operator==(cr a, cr b) {
  return a.value == b.value;
}
static inline bool operator!=(cr a, cr b) {
  return a.value != b.value;
}
static inline cr sqrtf(cr a) {
  return ++operations, cr(std::sqrt(a.value));
}

#define PABD_REAL_COUNTED
#include "contact_rows.h"
#include "lbvh.h"
#include "narrow.h"

/* Operations of one row of a kernel of kernels.def, or of a stage of collision (after them: bounds, narrow, pairs,
 * contact_fill, contact_save). `view` is a float view. */
extern "C" int64_t count_operations(int32_t kernel, int32_t row, const void *view) {
  const pabd_view *s = static_cast<const pabd_view *>(view);
  static void (*const rows[])(int32_t, const pabd_view *) = {
#define KERNEL(name, rows, reads, writes) name##_at,
#define SIMD_KERNEL KERNEL
#include "kernels.def"
#undef SIMD_KERNEL
#undef KERNEL
      bounds_at, narrow_at, count_pairs_at, contact_fill_at, contact_save_at};
  operations = 0;
  rows[kernel](row, s);
  return operations;
}
