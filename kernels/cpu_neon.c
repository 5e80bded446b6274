/* NEON, which every aarch64 has: 16 floats are four registers, and a table of 16 floats
 * is four of bytes: the first bytes of all floats, the second ones, ... */
#ifdef __aarch64__

#include <arm_neon.h>
#include <stdint.h>

#define SIMD_TABLE cpu_neon
#define SIMD_ACCS 4
#define INLINE static inline __attribute__((always_inline))

struct v16 {
	float32x4_t v[4];
};

struct c16 {
	uint8x16_t v;
};

struct levels {
	uint8x16x4_t bytes;
};

INLINE struct v16
v16_set(float f)
{
	float32x4_t v = vdupq_n_f32(f);

	return (struct v16){{v, v, v, v}};
}

INLINE struct v16
v16_zero(void)
{
	return v16_set(0);
}

INLINE struct v16
v16_load(const float *p)
{
	return (struct v16){
		{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}

INLINE void
v16_store(float *p, struct v16 a)
{
	vst1q_f32(p, a.v[0]);
	vst1q_f32(p + 4, a.v[1]);
	vst1q_f32(p + 8, a.v[2]);
	vst1q_f32(p + 12, a.v[3]);
}

INLINE struct v16
v16_mul(struct v16 a, struct v16 b)
{
	return (struct v16){{vmulq_f32(a.v[0], b.v[0]), vmulq_f32(a.v[1], b.v[1]),
			     vmulq_f32(a.v[2], b.v[2]), vmulq_f32(a.v[3], b.v[3])}};
}

INLINE struct v16
v16_fma(struct v16 a, struct v16 b, struct v16 c)
{
	return (struct v16){
		{vfmaq_f32(c.v[0], a.v[0], b.v[0]), vfmaq_f32(c.v[1], a.v[1], b.v[1]),
		 vfmaq_f32(c.v[2], a.v[2], b.v[2]), vfmaq_f32(c.v[3], a.v[3], b.v[3])}};
}

INLINE float32x4_t
fold(struct v16 a)
{
	return vaddq_f32(vaddq_f32(a.v[0], a.v[1]), vaddq_f32(a.v[2], a.v[3]));
}

INLINE void
v16_sums(const struct v16 *a, float *out)
{
	vst1q_f32(out, vpaddq_f32(vpaddq_f32(fold(a[0]), fold(a[1])),
				  vpaddq_f32(fold(a[2]), fold(a[3]))));
}

/* A clear bit becomes the sign of a one: bit j is shifted up to the top of lane j. */
INLINE float32x4_t
signs4(uint32x4_t clear, int32x4_t up)
{
	uint32x4_t sign = vandq_u32(vshlq_u32(clear, up), vdupq_n_u32(0x80000000));

	return vreinterpretq_f32_u32(vorrq_u32(sign, vdupq_n_u32(0x3f800000)));
}

INLINE struct v16
v16_signs(const uint8_t *p)
{
	uint32x4_t clear = vdupq_n_u32(~((uint32_t)p[0] | (uint32_t)p[1] << 8));

	return (struct v16){{signs4(clear, (int32x4_t){31, 30, 29, 28}),
			     signs4(clear, (int32x4_t){27, 26, 25, 24}),
			     signs4(clear, (int32x4_t){23, 22, 21, 20}),
			     signs4(clear, (int32x4_t){19, 18, 17, 16})}};
}

#define ALL(X)                                                                         \
	{                                                                              \
		X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10),     \
			X(11), X(12), X(13), X(14), X(15)                              \
	}
#define BYTE(j) (uint8_t)((at + n * (j)) >> 3)
#define NEXT(j) (uint8_t)(((at + n * (j)) >> 3) + 1)
#define DOWN(j) (int8_t)(-(int)((at + n * (j)) & 7))
#define UP(j) (int8_t)(8 - ((at + n * (j)) & 7))

/* The two bytes around each field, shifted against each other: a shift by 8 is none. */
INLINE struct c16
fields(const uint8_t *p, unsigned at, unsigned n)
{
	uint8x16_t b = vld1q_u8(p);
	uint8x16_t low = vqtbl1q_u8(b, (uint8x16_t)ALL(BYTE));
	uint8x16_t high = vqtbl1q_u8(b, (uint8x16_t)ALL(NEXT));

	return (struct c16){vorrq_u8(vshlq_u8(low, (int8x16_t)ALL(DOWN)),
				     vshlq_u8(high, (int8x16_t)ALL(UP)))};
}

INLINE struct c16
c16_join(struct c16 low, struct c16 high)
{
	return (struct c16){vbslq_u8(vdupq_n_u8(3), low.v, vshlq_n_u8(high.v, 2))};
}

INLINE struct levels
levels16(const float *p)
{
	return (struct levels){vld4q_u8((const uint8_t *)p)};
}

/* Twice, so that bit 3 of a number does not matter. */
INLINE struct levels
levels8(const float *p)
{
	float twice[16];

	vst1q_f32(twice, vld1q_f32(p));
	vst1q_f32(twice + 4, vld1q_f32(p + 4));
	vst1q_f32(twice + 8, vld1q_f32(p));
	vst1q_f32(twice + 12, vld1q_f32(p + 4));
	return levels16(twice);
}

/* A byte of each float at a time, then the bytes side by side. */
INLINE struct v16
lookup16(struct levels t, struct c16 c)
{
	uint8x16_t i = vandq_u8(c.v, vdupq_n_u8(15));
	uint8x16x2_t a =
		vzipq_u8(vqtbl1q_u8(t.bytes.val[0], i), vqtbl1q_u8(t.bytes.val[1], i));
	uint8x16x2_t b =
		vzipq_u8(vqtbl1q_u8(t.bytes.val[2], i), vqtbl1q_u8(t.bytes.val[3], i));
	uint16x8x2_t x = vzipq_u16(vreinterpretq_u16_u8(a.val[0]),
				   vreinterpretq_u16_u8(b.val[0]));
	uint16x8x2_t y = vzipq_u16(vreinterpretq_u16_u8(a.val[1]),
				   vreinterpretq_u16_u8(b.val[1]));

	return (struct v16){
		{vreinterpretq_f32_u16(x.val[0]), vreinterpretq_f32_u16(x.val[1]),
		 vreinterpretq_f32_u16(y.val[0]), vreinterpretq_f32_u16(y.val[1])}};
}

INLINE struct v16
lookup8(struct levels t, struct c16 c)
{
	return lookup16(t, c);
}

INLINE float
half(uint16_t h)
{
	return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(h))), 0);
}

#include "kernels/cpu_simd.h"

#else
typedef int cpu_neon_is_for_aarch64;
#endif
