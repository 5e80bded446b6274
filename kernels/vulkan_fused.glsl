// Attention with qjl keys: a value format's file defines VALUE_BYTES, LEVELS and level(),
// and behind this file value_at() or value_four(); vulkan_fused_main.glsl is the rest.
//
// The keys are split over workgroups.  Each keeps, per head, the maximum, the sum and the
// weighted sum of values that are not yet transformed back: the transform is linear, so
// the merge pass does it once.  With PLAIN: a workgroup per head walks all keys.

#define KEY_BYTES 34u
#define QUADS 64u
#define QJL_SCALE (1.2533141373155003 / 256.0)
#define PART 132u // floats of a part: 128 sums, the maximum, the sum, whether any is finite

layout(std430, set = 0, binding = 0) readonly buffer Q { vec4 quads[]; } q;
layout(std430, set = 0, binding = 3) writeonly buffer Out { float values[]; } result;

bool is_finite(float v)
{
	return (floatBitsToUint(v) & 0x7f800000u) != 0x7f800000u;
}

bool is_nan(float v)
{
	return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u;
}

#define MINUS_INFINITY uintBitsToFloat(0xff800000u)

// A weight against the maximum so far; a logit that is no number stays none.
float weight(float raw, float most)
{
	return is_nan(raw) ? raw : raw == MINUS_INFINITY ? 0.0 : exp(raw - most);
}

#ifdef PLAIN
#define LANES 32u
#define LEVEL(i) level(i)
layout(local_size_x = 32) in;
layout(std430, set = 0, binding = 1) readonly buffer K { uint words[]; } k;
layout(std430, set = 0, binding = 2) readonly buffer V { uint words[]; } v;
shared float s_sum[LANES];
shared vec4 s_y[LANES];

uint load32(uint at)
{
	return word_of(v.words[at >> 2], v.words[(at >> 2) + 1u], at);
}

uint load16(uint at)
{
	return (v.words[at >> 2] >> ((at & 2u) * 8u)) & 0xffffu;
}
#else
#define LANES 128u
#define TILE 64u // keys
#define LEVEL(i) s_level[i]
layout(local_size_x = 128) in;
layout(std430, set = 0, binding = 1) readonly buffer K { uvec4 rows[]; } k;
layout(std430, set = 0, binding = 2) readonly buffer V { uvec4 rows[]; } v;
// 16 KiB in all is what every device has.
shared uint s_tile[(TILE * VALUE_BYTES + 15u) / 16u * 4u + 8u]; // keys, then values
shared vec4 s_q[8u * QUADS];
shared float s_weight[TILE * 8u];
shared float s_part[LANES];
shared float s_max[8], s_fade[8];
shared uint s_any[8];
shared float s_level[LEVELS];

uint load32(uint at)
{
	return word_of(s_tile[at >> 2], s_tile[(at >> 2) + 1u], at);
}

uint load16(uint at)
{
	return (s_tile[at >> 2] >> ((at & 2u) * 8u)) & 0xffffu;
}
#endif
