/* AVX-512 with the byte, doubleword and vector length parts, as every server since 2017
 * has them: one register is 16 floats, and a table of 16 is one register. */
#ifdef __x86_64__

#include <immintrin.h>
#include <stdint.h>

#define SIMD_TABLE cpu_avx512
#define SIMD_ACCS 8
#define INLINE static inline __attribute__((always_inline))

/* Whoever calls has looked whether the processor has it: see cpu_set.c. */
#ifdef __clang__
#pragma clang attribute push(                                                          \
	__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))),   \
	apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#endif

struct v16 {
	__m512 v;
};

struct c16 {
	__m512i v;
};

struct levels {
	__m512 v;
};

INLINE struct v16
v16_zero(void)
{
	return (struct v16){_mm512_setzero_ps()};
}

INLINE struct v16
v16_set(float f)
{
	return (struct v16){_mm512_set1_ps(f)};
}

INLINE struct v16
v16_load(const float *p)
{
	return (struct v16){_mm512_loadu_ps(p)};
}

INLINE void
v16_store(float *p, struct v16 a)
{
	_mm512_storeu_ps(p, a.v);
}

INLINE struct v16
v16_mul(struct v16 a, struct v16 b)
{
	return (struct v16){_mm512_mul_ps(a.v, b.v)};
}

INLINE struct v16
v16_fma(struct v16 a, struct v16 b, struct v16 c)
{
	return (struct v16){_mm512_fmadd_ps(a.v, b.v, c.v)};
}

INLINE __m256
fold(__m512 a)
{
	return _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
}

/* Four sums of 16 as one vector. */
INLINE __m128
sums4(const struct v16 *a)
{
	__m256 s = _mm256_hadd_ps(_mm256_hadd_ps(fold(a[0].v), fold(a[1].v)),
				  _mm256_hadd_ps(fold(a[2].v), fold(a[3].v)));

	return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

INLINE void
v16_sums(const struct v16 *a, float *out)
{
	_mm_storeu_ps(out, sums4(a));
	_mm_storeu_ps(out + 4, sums4(a + 4));
}

INLINE struct v16
v16_signs(const uint8_t *p)
{
	return (struct v16){_mm512_mask_blend_ps(
		(__mmask16)(p[0] | p[1] << 8), _mm512_set1_ps(-1), _mm512_set1_ps(1))};
}

/* Two bytes around the field into each lane, then the lane's own shift. */
#define BYTES(j) (int)(0x80800100u + ((at + n * (j)) >> 3) * 0x101u)
#define SHIFT(j) (int)((at + n * (j)) & 7)
#define ALL(X)                                                                         \
	(__m512i)(__v16si)                                                             \
	{                                                                              \
		X(0), X(1), X(2), X(3), X(4), X(5), X(6), X(7), X(8), X(9), X(10),     \
			X(11), X(12), X(13), X(14), X(15)                              \
	}

INLINE struct c16
fields(const uint8_t *p, unsigned at, unsigned n)
{
	__m512i b = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)p));

	b = _mm512_shuffle_epi8(b, ALL(BYTES));
	return (struct c16){_mm512_srlv_epi32(b, ALL(SHIFT))};
}

INLINE struct c16
c16_join(struct c16 low, struct c16 high)
{
	__m512i up = _mm512_slli_epi32(high.v, 2), mask = _mm512_set1_epi32(3);

	return (struct c16){_mm512_ternarylogic_epi32(mask, low.v, up, 0xca)};
}

/* Twice, so that bit 3 of a number does not matter. */
INLINE struct levels
levels8(const float *p)
{
	return (struct levels){_mm512_broadcast_f32x8(_mm256_loadu_ps(p))};
}

INLINE struct levels
levels16(const float *p)
{
	return (struct levels){_mm512_loadu_ps(p)};
}

INLINE struct v16
lookup16(struct levels t, struct c16 c)
{
	return (struct v16){_mm512_permutexvar_ps(c.v, t.v)};
}

INLINE struct v16
lookup8(struct levels t, struct c16 c)
{
	return lookup16(t, c);
}

INLINE float
half(uint16_t h)
{
	return _cvtsh_ss(h);
}

#include "kernels/cpu_simd.h"

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#else
typedef int cpu_avx512_is_for_x86_64;
#endif
