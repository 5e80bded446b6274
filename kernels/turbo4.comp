// turbo4: four blocks of 32 elements, codes of 4 bits, a norm each.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "vulkan_args.glsl"
#define KEY_BYTES 72u
#define QUADS 32u
#define LEVELS 16u
#define level(i) tables.turbo4_c[i]
#include "vulkan_score.glsl"

uint codes[4];
float norm;

void key_open(uint at, uint c)
{
	at += 18u * c;
	norm = half_value(load16(at));
	[[unroll]] for (uint i = 0u; i < 4u; i++)
		codes[i] = load32(at + 2u + 4u * i);
}

// Low nibbles are the first 16 elements, high ones the others.
vec4 key_four(uint j)
{
	uint bits = codes[j & 3u] >> (j & 4u);

	return vec4(LEVEL(bits & 15u), LEVEL((bits >> 8) & 15u), LEVEL((bits >> 16) & 15u),
		    LEVEL((bits >> 24) & 15u));
}

#define key_scale() norm
#define key_residual(at, i) vec4(0.0)
#define query_ready(lane)
#define key_score(at, h, sum) (sum)
#include "vulkan_score_main.glsl"
