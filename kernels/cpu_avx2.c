/* AVX2 with FMA and F16C: 16 floats are two registers. */
#ifdef __x86_64__

#include <immintrin.h>
#include <stdint.h>

#define SIMD_TABLE cpu_avx2
#define SIMD_ACCS 4
#define INLINE static inline __attribute__((always_inline))

/* Whoever calls has looked whether the processor has it: see cpu_set.c. */
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))),                 \
			     apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,f16c")
#endif

struct v16 {
	__m256 a, b;
};

struct c16 {
	__m256i a, b;
};

struct levels {
	__m256 low, high;
};

INLINE struct v16
v16_zero(void)
{
	return (struct v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

INLINE struct v16
v16_set(float f)
{
	return (struct v16){_mm256_set1_ps(f), _mm256_set1_ps(f)};
}

INLINE struct v16
v16_load(const float *p)
{
	return (struct v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

INLINE void
v16_store(float *p, struct v16 a)
{
	_mm256_storeu_ps(p, a.a);
	_mm256_storeu_ps(p + 8, a.b);
}

INLINE struct v16
v16_mul(struct v16 a, struct v16 b)
{
	return (struct v16){_mm256_mul_ps(a.a, b.a), _mm256_mul_ps(a.b, b.b)};
}

INLINE struct v16
v16_fma(struct v16 a, struct v16 b, struct v16 c)
{
	return (struct v16){_mm256_fmadd_ps(a.a, b.a, c.a),
			    _mm256_fmadd_ps(a.b, b.b, c.b)};
}

INLINE __m256
fold(struct v16 a)
{
	return _mm256_add_ps(a.a, a.b);
}

INLINE void
v16_sums(const struct v16 *a, float *out)
{
	__m256 s = _mm256_hadd_ps(_mm256_hadd_ps(fold(a[0]), fold(a[1])),
				  _mm256_hadd_ps(fold(a[2]), fold(a[3])));

	_mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(s),
				      _mm256_extractf128_ps(s, 1)));
}

/* A clear bit becomes the sign of a one: bit j is shifted up to the top of lane j. */
INLINE __m256
signs8(unsigned bits)
{
	__m256i up =
		_mm256_sllv_epi32(_mm256_set1_epi32((int)~bits),
				  _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24));

	return _mm256_or_ps(
		_mm256_and_ps(_mm256_castsi256_ps(up), _mm256_set1_ps(-0.0f)),
		_mm256_set1_ps(1));
}

INLINE struct v16
v16_signs(const uint8_t *p)
{
	return (struct v16){signs8(p[0]), signs8(p[1])};
}

/* Two bytes around the field into each lane, then the lane's own shift: eight fields are
 * whole bytes, so both halves shift alike. */
#define BYTES(j) (int)(0x80800100u + ((at + n * (j)) >> 3) * 0x101u)
#define SHIFT(j) (int)((at + n * (j)) & 7)
#define EIGHT(X, j)                                                                      \
	_mm256_setr_epi32(X(j), X(j + 1), X(j + 2), X(j + 3), X(j + 4), X(j + 5),        \
			  X(j + 6), X(j + 7))

INLINE struct c16
fields(const uint8_t *p, unsigned at, unsigned n)
{
	__m256i all = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)p));
	__m256i shift = EIGHT(SHIFT, 0);

	return (struct c16){
		_mm256_srlv_epi32(_mm256_shuffle_epi8(all, EIGHT(BYTES, 0)), shift),
		_mm256_srlv_epi32(_mm256_shuffle_epi8(all, EIGHT(BYTES, 8)), shift)};
}

INLINE __m256i
join8(__m256i low, __m256i high)
{
	__m256i mask = _mm256_set1_epi32(3);

	return _mm256_or_si256(_mm256_and_si256(mask, low),
			       _mm256_andnot_si256(mask, _mm256_slli_epi32(high, 2)));
}

INLINE struct c16
c16_join(struct c16 low, struct c16 high)
{
	return (struct c16){join8(low.a, high.a), join8(low.b, high.b)};
}

INLINE struct levels
levels8(const float *p)
{
	return (struct levels){_mm256_loadu_ps(p), _mm256_setzero_ps()};
}

INLINE struct levels
levels16(const float *p)
{
	return (struct levels){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

/* The permutation looks at three bits. */
INLINE struct v16
lookup8(struct levels t, struct c16 c)
{
	return (struct v16){_mm256_permutevar8x32_ps(t.low, c.a),
			    _mm256_permutevar8x32_ps(t.low, c.b)};
}

/* The fourth, moved to the sign, chooses between both halves. */
INLINE __m256
choose(struct levels t, __m256i c)
{
	return _mm256_blendv_ps(_mm256_permutevar8x32_ps(t.low, c),
				_mm256_permutevar8x32_ps(t.high, c),
				_mm256_castsi256_ps(_mm256_slli_epi32(c, 28)));
}

INLINE struct v16
lookup16(struct levels t, struct c16 c)
{
	return (struct v16){choose(t, c.a), choose(t, c.b)};
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
typedef int cpu_avx2_is_for_x86_64;
#endif
