// polar: 128 codes of 4 bits and one residual bit.  <W y, q> = <y, W q>, so that the query
// carries the transform, and the residual is one number per query.
#define KEY_BYTES 82u
#define QUADS 32u
#define LEVELS 16u
#define level(i) tables.polar_c[i]
#if defined(PLAIN) && defined(QUERY_TRANSFORM)
#define KEY_TRANSFORM
#endif
#include "vulkan_score.glsl"

#define STEP 0.04419417382415922 // 0.5 / sqrt(128)

uint codes[4];

void key_open(uint at, uint c)
{
	[[unroll]] for (uint i = 0u; i < 4u; i++)
		codes[i] = load32(at + 2u + 16u * c + 4u * i);
}

vec4 key_four(uint j)
{
	uint bits = codes[j >> 1] >> (16u * (j & 1u));

	return vec4(LEVEL(bits & 15u), LEVEL((bits >> 4) & 15u), LEVEL((bits >> 8) & 15u),
		    LEVEL((bits >> 12) & 15u));
}

// The residual vector of four elements.
vec4 residual_four(uint i)
{
	return STEP * signs_of(tables.residual[i >> 3] >> (4u * (i & 7u)));
}

// The residual belongs to the run, not to the block: without it the byte is not looked at.
float key_side(uint at)
{
	return args.use_qjl == 0u ? 0.0 : sign_of(load16(at + 66u));
}

#define key_scale() 1.0

#ifdef PLAIN
#define key_residual(at, i) (key_side(at) * residual_four(i))
#define key_side_of(at, h) 0.0
#else
shared float s_part[LANES];
shared float s_side[8];

void query_butterfly(uint lane)
{
	vec4 v[2];

	for (uint i = lane; i < HEADS * QUADS; i += LANES)
		s_q[i] = butterfly4(s_q[i]);
	for (uint m = 1u; m < QUADS; m <<= 1) {
		barrier();
		[[unroll]] for (uint n = 0u; n < 2u; n++) {
			uint i = lane + n * LANES;
			if (i < HEADS * QUADS)
				v[n] = (i & m) == 0u ? s_q[i] + s_q[i + m] : s_q[i - m] - s_q[i];
		}
		barrier();
		[[unroll]] for (uint n = 0u; n < 2u; n++)
			if (lane + n * LANES < HEADS * QUADS)
				s_q[lane + n * LANES] = v[n];
	}
}

// The query, transformed if it was raw, times the residual vector: 16 lanes per head.
void query_ready(uint lane)
{
	uint h = lane >> 4, i = lane & 15u;

#ifdef QUERY_TRANSFORM
	barrier();
	query_butterfly(lane);
#endif
	barrier();
	s_part[lane] = h < HEADS ? dot(residual_four(i), s_q[h * QUADS + i]) +
		       dot(residual_four(i + 16u), s_q[h * QUADS + i + 16u]) : 0.0;
	barrier();
	if (lane < HEADS) {
		float sum = 0.0;
		for (i = 0u; i < 16u; i++)
			sum += s_part[16u * lane + i];
		s_side[lane] = sum;
	}
}

#define key_side_of(at, h) (key_side(at) * s_side[h])
#endif

float key_score(uint at, uint h, float sum)
{
	return (sum + key_side_of(at, h)) * (1.0 / 128.0) * half_value(load16(at));
}
#include "vulkan_score_main.glsl"
