// Scores of keys: a format's file defines KEY_BYTES, QUADS (a query in fours), LEVELS and
// level(), and behind this file its functions; vulkan_score_main.glsl is the rest.
//
// A lane takes a whole key, so nothing is reduced over lanes.  A run of keys is copied
// into shared memory by wide aligned loads, decoded once, and meets HEADS queries there.
// With PLAIN: a workgroup per key and head, as public kernels do, to compare with.

layout(std430, set = 0, binding = 0) readonly buffer Q { vec4 quads[]; } q;
layout(std430, set = 0, binding = 3) writeonly buffer Out { float scores[]; } result;

#define QJL_SCALE (1.2533141373155003 / 256.0)

#ifdef PLAIN
#define LANES 32u
#define LEVEL(i) level(i)
layout(local_size_x = 32) in;
layout(std430, set = 0, binding = 1) readonly buffer K { uint words[]; } k;
shared float s_sum[LANES];

uint load32(uint at)
{
	return word_of(k.words[at >> 2], k.words[(at >> 2) + 1u], at);
}

uint load16(uint at)
{
	return (k.words[at >> 2] >> ((at & 2u) * 8u)) & 0xffffu;
}
#else
#define LANES 128u
#define LEVEL(i) s_level[i]
layout(local_size_x = 128) in;
layout(std430, set = 0, binding = 1) readonly buffer K { uvec4 rows[]; } k;
// The last word is read for the sake of bits that are then not used.
shared uint s_tile[(LANES * KEY_BYTES + 15u) / 16u * 4u + 8u];
shared vec4 s_q[8u * QUADS];
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
